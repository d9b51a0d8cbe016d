// AT_DISPATCH_*: the body once for each C++ type that a tensor's data type may be.
#pragma once
#include "types.h"

#define BRIEF_CASE_(enumerator, type, ...) \
    case ::at::ScalarType::enumerator: {   \
        using scalar_t = type;             \
        return __VA_ARGS__();              \
    }
#define BRIEF_DISPATCH_(given, name, cases)                                                     \
    [&] {                                                                                       \
        const ::at::ScalarType brief_type_ = (given);                                           \
        switch (brief_type_) {                                                                  \
            cases default                                                                       \
                : throw ::c10::NotImplementedError(                                             \
                      ::at::brief::joined('"', name, "\" not implemented for '", brief_type_, "'")); \
        }                                                                                       \
    }()
#define AT_DISPATCH_FLOATING_TYPES(given, name, ...) \
    BRIEF_DISPATCH_(given, name, BRIEF_CASE_(Float, float, __VA_ARGS__) BRIEF_CASE_(Double, double, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(given, name, ...)                                                              \
    BRIEF_DISPATCH_(given, name,                                                                                  \
                    BRIEF_CASE_(Byte, uint8_t, __VA_ARGS__) BRIEF_CASE_(Char, int8_t, __VA_ARGS__)                \
                        BRIEF_CASE_(Short, int16_t, __VA_ARGS__) BRIEF_CASE_(Int, int32_t, __VA_ARGS__)           \
                            BRIEF_CASE_(Long, int64_t, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(given, name, ...)                                                                   \
    BRIEF_DISPATCH_(given, name,                                                                                  \
                    BRIEF_CASE_(Byte, uint8_t, __VA_ARGS__) BRIEF_CASE_(Char, int8_t, __VA_ARGS__)                \
                        BRIEF_CASE_(Short, int16_t, __VA_ARGS__) BRIEF_CASE_(Int, int32_t, __VA_ARGS__)           \
                            BRIEF_CASE_(Long, int64_t, __VA_ARGS__) BRIEF_CASE_(Float, float, __VA_ARGS__)        \
                                BRIEF_CASE_(Double, double, __VA_ARGS__))
