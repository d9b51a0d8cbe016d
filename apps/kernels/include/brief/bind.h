// PYBIND11_MODULE with m.def(name, function, docstring): as much of it as load_inline writes.
#pragma once
#include <memory>

#include "convert.h"

namespace at {
namespace brief {

// A bound function: what Python needs, and the C++ function behind it.
struct Bound {
    std::string name, documentation;
    PyMethodDef method{};
    void (*function)() = nullptr;
};
inline const char* capsule_name() { return "brief.bound"; }

template <class Result, class... Arguments, size_t... Index>
PyObject* invoke(Result (*function)(Arguments...), PyObject* const* given, std::index_sequence<Index...>) {
    (void)given;
    if constexpr (std::is_void_v<Result>) {
        function(from_python<std::decay_t<Arguments>>(given[Index])...);
        Py_RETURN_NONE;
    } else {
        return to_python<std::decay_t<Result>>(function(from_python<std::decay_t<Arguments>>(given[Index])...));
    }
}

template <class Result, class... Arguments> PyObject* entry(PyObject* self, PyObject* const* given, Py_ssize_t count) {
    const auto* bound = static_cast<Bound*>(PyCapsule_GetPointer(self, capsule_name()));
    constexpr Py_ssize_t wanted = sizeof...(Arguments);
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "%s(): incompatible function arguments: expected %zd, got %zd", bound->name.c_str(), wanted,
                     count);
        return nullptr;
    }
    try {
        const auto function = reinterpret_cast<Result (*)(Arguments...)>(bound->function);
        return invoke(function, given, std::index_sequence_for<Arguments...>{});
    } catch (const PythonError&) {
        return nullptr;
    } catch (const c10::IndexError& problem) {
        PyErr_SetString(PyExc_IndexError, problem.what());
    } catch (const c10::NotImplementedError& problem) {
        PyErr_SetString(PyExc_NotImplementedError, problem.what());
    } catch (const std::exception& problem) {
        PyErr_SetString(PyExc_RuntimeError, problem.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "an exception of unknown type");
    }
    return nullptr;
}

}  // namespace brief
}  // namespace at

namespace pybind11 {

class module_ {
  public:
    explicit module_(PyObject* module) : module_object_(module) {}
    template <class Result, class... Arguments>
    module_& def(const char* name, Result (*function)(Arguments...), const char* documentation = "") {
        using namespace at::brief;
        auto bound = std::make_unique<Bound>();
        bound->name = name;
        bound->documentation = documentation;
        bound->function = reinterpret_cast<void (*)()>(function);
        bound->method.ml_name = bound->name.c_str();
        bound->method.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&entry<Result, Arguments...>));
        bound->method.ml_flags = METH_FASTCALL;
        bound->method.ml_doc = bound->documentation.c_str();
        const Object capsule(PyCapsule_New(bound.get(), capsule_name(), nullptr));
        const Object callable(PyCFunction_New(&bound.release()->method, capsule.get()));  // lives as long as the module
        if (PyObject_SetAttrString(module_object_, name, callable.get()) < 0) throw PythonError{};
        return *this;
    }

  private:
    PyObject* module_object_;
};

}  // namespace pybind11
namespace py = pybind11;

namespace torch {
template <class Function> Function wrap_pybind_function(Function function) { return function; }
}  // namespace torch

#define BRIEF_TEXT_(x) #x
#define BRIEF_TEXT(x) BRIEF_TEXT_(x)
#define BRIEF_JOIN_(a, b) a##b
#define BRIEF_JOIN(a, b) BRIEF_JOIN_(a, b)
#define PYBIND11_MODULE(name, variable)                                                                              \
    static void brief_fill_module(::pybind11::module_& variable);                                                    \
    extern "C" __attribute__((visibility("default"))) PyObject* BRIEF_JOIN(PyInit_, name)() {                        \
        static PyModuleDef definition = {PyModuleDef_HEAD_INIT, BRIEF_TEXT(name), nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
        PyObject* made = PyModule_Create(&definition);                                                               \
        if (!made) return nullptr;                                                                                   \
        try {                                                                                                        \
            ::pybind11::module_ module(made);                                                                        \
            brief_fill_module(module);                                                                               \
        } catch (const ::at::brief::PythonError&) {                                                                  \
            Py_DECREF(made);                                                                                         \
            return nullptr;                                                                                          \
        }                                                                                                            \
        return made;                                                                                                 \
    }                                                                                                                \
    static void brief_fill_module(::pybind11::module_& variable)
