// Allocation, and the library's products for candidates judged under policy `library`: all of it Python's own functions.
#pragma once
#include "convert.h"

namespace at {
namespace brief {

// torch.NAME(arguments..., dtype=...) where a dtype is given, else without.
template <class... Arguments> Tensor made(const char* name, const ScalarType* type, const Arguments&... arguments) {
    const Object function = torch_attribute(name);
    const Object packed[] = {Object(to_python(arguments))...};
    PyObject* raw[sizeof...(arguments) + 1];
    for (size_t index = 0; index < sizeof...(arguments); ++index) raw[index] = packed[index].get();
    static PyObject* const keyword = Py_BuildValue("(s)", "dtype");
    if (!type) return Tensor(PyObject_Vectorcall(function.get(), raw, sizeof...(arguments), nullptr));
    raw[sizeof...(arguments)] = dtype_object(*type);
    return Tensor(PyObject_Vectorcall(function.get(), raw, sizeof...(arguments), keyword));
}
template <class... Arguments> Tensor made_as(const char* name, const TensorOptions& options, const Arguments&... arguments) {
    const ScalarType type = options.dtype();
    return made(name, &type, arguments...);
}

}  // namespace brief

inline Tensor empty(IntArrayRef shape, TensorOptions options = {}) { return brief::made_as("empty", options, shape); }
inline Tensor zeros(IntArrayRef shape, TensorOptions options = {}) { return brief::made_as("zeros", options, shape); }
inline Tensor ones(IntArrayRef shape, TensorOptions options = {}) { return brief::made_as("ones", options, shape); }
inline Tensor full(IntArrayRef shape, double value, TensorOptions options = {}) {
    return brief::made_as("full", options, shape, value);
}
inline Tensor empty_like(const Tensor& other) { return brief::made("empty_like", nullptr, other); }
inline Tensor zeros_like(const Tensor& other) { return brief::made("zeros_like", nullptr, other); }
inline Tensor ones_like(const Tensor& other) { return brief::made("ones_like", nullptr, other); }
inline Tensor empty_like(const Tensor& other, TensorOptions options) { return brief::made_as("empty_like", options, other); }
inline Tensor zeros_like(const Tensor& other, TensorOptions options) { return brief::made_as("zeros_like", options, other); }

inline Tensor mm(const Tensor& a, const Tensor& b) { return brief::made("mm", nullptr, a, b); }
inline Tensor bmm(const Tensor& a, const Tensor& b) { return brief::made("bmm", nullptr, a, b); }
inline Tensor matmul(const Tensor& a, const Tensor& b) { return brief::made("matmul", nullptr, a, b); }
inline Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b) { return brief::made("addmm", nullptr, c, a, b); }

}  // namespace at
