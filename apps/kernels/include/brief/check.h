// Python objects with a reference count, Python's errors as C++ exceptions, and TORCH_CHECK.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace at {
namespace brief {

// A Python error is set already; the wrapper around a bound function returns it.
struct PythonError {};

// Owns one reference.
class Object {
  public:
    Object() = default;
    explicit Object(PyObject* owned) : pointer_(owned) {
        if (!owned) throw PythonError{};
    }
    static Object borrow(PyObject* borrowed) {
        Py_XINCREF(borrowed);
        Object object;
        object.pointer_ = borrowed;
        return object;
    }
    Object(const Object& other) : pointer_(other.pointer_) { Py_XINCREF(pointer_); }
    Object(Object&& other) noexcept : pointer_(other.pointer_) { other.pointer_ = nullptr; }
    Object& operator=(Object other) noexcept {
        std::swap(pointer_, other.pointer_);
        return *this;
    }
    ~Object() { Py_XDECREF(pointer_); }

    PyObject* get() const { return pointer_; }
    PyObject* release() { return std::exchange(pointer_, nullptr); }
    explicit operator bool() const { return pointer_ && pointer_ != Py_None; }
    Object attribute(const char* name) const { return Object(PyObject_GetAttrString(pointer_, name)); }

  private:
    PyObject* pointer_ = nullptr;
};

// The module `torch`, and one of its attributes; looked up once and kept.
inline PyObject* torch_module() {
    static PyObject* module = PyImport_ImportModule("torch");
    if (!module) throw PythonError{};
    return module;
}
inline Object torch_attribute(const char* name) { return Object(PyObject_GetAttrString(torch_module(), name)); }

template <class... Parts>
std::string joined(const Parts&... parts) {
    std::ostringstream text;
    (void)std::initializer_list<int>{((text << parts), 0)...};
    return text.str();
}

[[noreturn]] inline void fail(const std::string& message, PyObject* kind = PyExc_RuntimeError) {
    PyErr_SetString(kind, message.c_str());
    throw PythonError{};
}

inline std::string or_default(const std::string& given, const char* otherwise) { return given.empty() ? otherwise : given; }

}  // namespace brief
}  // namespace at

namespace c10 {
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct IndexError : Error {
    using Error::Error;
};
struct NotImplementedError : Error {
    using Error::Error;
};
}  // namespace c10

// Thrown as C++ exceptions, so that they may come from any thread that is joined, with or without the interpreter's lock.
#define TORCH_CHECK(condition, ...)                                                                             \
    do {                                                                                                        \
        if (!(condition))                                                                                       \
            throw ::c10::Error(                                                                                 \
                ::at::brief::or_default(::at::brief::joined(__VA_ARGS__), "Expected " #condition " to be true, but got false.")); \
    } while (0)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ERROR(...) throw ::c10::Error(::at::brief::joined(__VA_ARGS__))
#define TORCH_CHECK_BINARY_(a, b, op, ...) TORCH_CHECK((a)op(b), "Check failed: " #a " " #op " " #b ". ", ##__VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK_BINARY_(a, b, ==)
#define TORCH_CHECK_NE(a, b) TORCH_CHECK_BINARY_(a, b, !=)
#define TORCH_CHECK_LT(a, b) TORCH_CHECK_BINARY_(a, b, <)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK_BINARY_(a, b, <=)
#define TORCH_CHECK_GT(a, b) TORCH_CHECK_BINARY_(a, b, >)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK_BINARY_(a, b, >=)
