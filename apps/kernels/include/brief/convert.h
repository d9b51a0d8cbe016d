// C++ values to Python's and back, strict as pybind11 is: no float for an int, no number for a tensor.
#pragma once
#include <type_traits>

#include "tensor.h"

namespace at {
namespace brief {

template <class T> struct IsVector : std::false_type {};
template <class T> struct IsVector<std::vector<T>> : std::true_type {};
template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};
template <class T> struct IsTuple : std::false_type {};
template <class... T> struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B> struct IsTuple<std::pair<A, B>> : std::true_type {};
template <class T> constexpr bool never = false;

template <class Items> PyObject* to_tuple(const Items& items) {
    Object tuple(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
    for (size_t index = 0; index < items.size(); ++index)
        PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(index), to_python(items[index]));
    return tuple.release();
}

template <class T> PyObject* to_python(const T& value) {
    if constexpr (std::is_same_v<T, Tensor>) {
        PyObject* object = value.defined() ? value.python() : Py_None;
        Py_INCREF(object);
        return object;
    } else if constexpr (std::is_same_v<T, bool>) {
        return PyBool_FromLong(value);
    } else if constexpr (std::is_same_v<T, ScalarType>) {
        PyObject* object = dtype_object(value);
        Py_INCREF(object);
        return object;
    } else if constexpr (std::is_integral_v<T>) {
        return PyLong_FromLongLong(static_cast<long long>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
        return PyFloat_FromDouble(static_cast<double>(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
        return PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
    } else if constexpr (std::is_same_v<T, IntArrayRef>) {
        return to_tuple(value);
    } else if constexpr (IsVector<T>::value) {
        Object tuple(to_tuple(value));
        return PySequence_List(tuple.get());
    } else if constexpr (IsOptional<T>::value) {
        if (value) return to_python(*value);
        Py_RETURN_NONE;
    } else if constexpr (IsTuple<T>::value) {
        return std::apply([](const auto&... items) { return PyTuple_Pack(sizeof...(items), Object(to_python(items)).get()...); }, value);
    } else {
        static_assert(never<T>, "this header can't return this type");
    }
}

[[noreturn]] inline void wrong_type(const char* wanted, PyObject* object) {
    fail(joined("incompatible function arguments: expected ", wanted, ", got ", Py_TYPE(object)->tp_name), PyExc_TypeError);
}

inline bool is_tensor(PyObject* object) {
    static PyObject* kind = torch_attribute("Tensor").release();
    const int is = PyObject_IsInstance(object, kind);
    if (is < 0) throw PythonError{};
    return is == 1;
}

template <class T> T from_python(PyObject* object) {
    if constexpr (std::is_same_v<T, Tensor>) {
        if (!is_tensor(object)) wrong_type("a tensor", object);
        return Tensor::borrow(object);
    } else if constexpr (std::is_same_v<T, bool>) {
        if (!PyBool_Check(object)) wrong_type("a bool", object);
        return object == Py_True;
    } else if constexpr (std::is_integral_v<T>) {
        if (PyFloat_Check(object)) wrong_type("an int", object);
        const Object index(PyNumber_Index(object));
        const long long value = PyLong_AsLongLong(index.get());
        if (value == -1 && PyErr_Occurred()) throw PythonError{};
        if (static_cast<long long>(static_cast<T>(value)) != value) fail("an int is out of range", PyExc_TypeError);
        return static_cast<T>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        const double value = PyFloat_AsDouble(object);
        if (value == -1.0 && PyErr_Occurred()) throw PythonError{};
        return static_cast<T>(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        if (!PyUnicode_Check(object)) wrong_type("a str", object);
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(object, &size);
        if (!text) throw PythonError{};
        return std::string(text, static_cast<size_t>(size));
    } else if constexpr (IsVector<T>::value) {
        if (!PyList_Check(object) && !PyTuple_Check(object)) wrong_type("a list", object);
        const Object tuple(PySequence_Tuple(object));
        T values;
        for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(tuple.get()); ++index)
            values.push_back(from_python<typename T::value_type>(PyTuple_GET_ITEM(tuple.get(), index)));
        return values;
    } else if constexpr (IsOptional<T>::value) {
        if (object == Py_None) return std::nullopt;
        return from_python<typename T::value_type>(object);
    } else {
        static_assert(never<T>, "this header can't take this type");
    }
}

}  // namespace brief
}  // namespace at
