// A tensor: a reference to Python's. Shape and strides are read once; everything that makes a tensor is Python's method.
#pragma once
#include "types.h"

namespace at {

class Tensor;

namespace brief {
template <class T> PyObject* to_python(const T& value);
}

// Elements of a contiguous or strided tensor by index, without checks.
template <class T, size_t N> class TensorAccessor {
  public:
    TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides) : data_(data), sizes_(sizes), strides_(strides) {}
    decltype(auto) operator[](int64_t index) const {
        if constexpr (N == 1)
            return (data_[index * strides_[0]]);
        else
            return TensorAccessor<T, N - 1>(data_ + index * strides_[0], sizes_ + 1, strides_ + 1);
    }
    int64_t size(int64_t axis) const { return sizes_[axis]; }
    int64_t stride(int64_t axis) const { return strides_[axis]; }
    T* data() const { return data_; }

  private:
    T* data_;
    const int64_t* sizes_;
    const int64_t* strides_;
};

class Tensor {
  public:
    Tensor() = default;
    explicit Tensor(PyObject* owned) : object_(owned) {}
    static Tensor borrow(PyObject* borrowed) {
        Tensor tensor;
        tensor.object_ = brief::Object::borrow(borrowed);
        return tensor;
    }
    PyObject* python() const { return object_.get(); }
    bool defined() const { return static_cast<bool>(object_); }

    // -- what it is like
    IntArrayRef sizes() const { return read().sizes_; }
    IntArrayRef strides() const { return read().strides_; }
    int64_t dim() const { return static_cast<int64_t>(read().sizes_.size()); }
    int64_t ndimension() const { return dim(); }
    int64_t size(int64_t axis) const { return read().sizes_[wrapped(axis)]; }
    int64_t stride(int64_t axis) const { return read().strides_[wrapped(axis)]; }
    int64_t numel() const {
        int64_t count = 1;
        for (int64_t size : read().sizes_) count *= size;
        return count;
    }
    bool is_contiguous() const {
        int64_t expected = 1;
        for (int64_t axis = dim() - 1; axis >= 0; --axis) {
            if (sizes_[axis] == 0) return true;
            if (sizes_[axis] == 1) continue;
            if (strides_[axis] != expected) return false;
            expected *= sizes_[axis];
        }
        return true;
    }
    ScalarType scalar_type() const {
        if (type_ == ScalarType::Undefined) type_ = brief::scalar_type_of(checked().attribute("dtype").get());
        return type_;
    }
    ScalarType dtype() const { return scalar_type(); }
    TensorOptions options() const { return TensorOptions(scalar_type()); }
    Device device() const { return Device(kCPU); }
    bool is_cpu() const { return true; }
    bool is_cuda() const { return false; }
    bool is_floating_point() const {
        const ScalarType type = scalar_type();
        return type == kHalf || type == kBFloat16 || type == kFloat || type == kDouble;
    }
    int64_t element_size() const { return integer("element_size"); }
    int64_t itemsize() const { return element_size(); }
    int64_t nbytes() const { return numel() * element_size(); }
    int64_t storage_offset() const { return integer("storage_offset"); }

    // -- its memory
    void* data_ptr() const { return PyLong_AsVoidPtr(brief::Object(PyObject_CallMethod(python(), "data_ptr", nullptr)).get()); }
    template <class T> T* data_ptr() const {
        using Bare = std::remove_const_t<T>;
        const ScalarType wanted = brief::Native<Bare>::type;
        TORCH_CHECK(scalar_type() == wanted, "expected scalar type ", toString(wanted), " but found ", toString(scalar_type()));
        return static_cast<T*>(data_ptr());
    }
    template <class T> T* mutable_data_ptr() const { return data_ptr<T>(); }
    template <class T> const T* const_data_ptr() const { return data_ptr<T>(); }
    template <class T> T* data() const { return data_ptr<T>(); }
    template <class T, size_t N> TensorAccessor<T, N> accessor() const {
        TORCH_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N, " dims but tensor has ", dim());
        return TensorAccessor<T, N>(data_ptr<T>(), sizes_.data(), strides_.data());
    }
    template <class T> T item() const {
        const brief::Object value(PyObject_CallMethod(checked().get(), "item", nullptr));
        if constexpr (std::is_floating_point_v<T>)
            return static_cast<T>(PyFloat_AsDouble(value.get()));
        else
            return static_cast<T>(PyLong_AsLongLong(brief::Object(PyNumber_Long(value.get())).get()));
    }

    // -- made from it, by Python's own methods
    Tensor contiguous() const { return is_contiguous() ? *this : call("contiguous"); }
    Tensor clone() const { return call("clone"); }
    Tensor detach() const { return call("detach"); }
    Tensor cpu() const { return *this; }
    Tensor t() const { return call("t"); }
    Tensor to(ScalarType type) const { return type == scalar_type() ? *this : call("to", type); }
    Tensor toType(ScalarType type) const { return to(type); }
    Tensor view(IntArrayRef shape) const { return call("view", shape); }
    Tensor reshape(IntArrayRef shape) const { return call("reshape", shape); }
    Tensor expand(IntArrayRef shape) const { return call("expand", shape); }
    Tensor permute(IntArrayRef axes) const { return call("permute", axes); }
    Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
    Tensor transpose(int64_t one, int64_t other) const { return call("transpose", one, other); }
    Tensor flatten(int64_t first = 0, int64_t last = -1) const { return call("flatten", first, last); }
    Tensor unsqueeze(int64_t axis) const { return call("unsqueeze", axis); }
    Tensor squeeze() const { return call("squeeze"); }
    Tensor squeeze(int64_t axis) const { return call("squeeze", axis); }
    Tensor select(int64_t axis, int64_t index) const { return call("select", axis, index); }
    Tensor narrow(int64_t axis, int64_t start, int64_t length) const { return call("narrow", axis, start, length); }
    const Tensor& zero_() const { return call_in_place("zero_"); }
    const Tensor& fill_(double value) const { return call_in_place("fill_", value); }
    const Tensor& copy_(const Tensor& source) const { return call_in_place("copy_", source); }

  private:
    const brief::Object& checked() const {
        TORCH_CHECK(defined(), "tensor is not defined");
        return object_;
    }
    const Tensor& read() const {
        if (known_) return *this;
        sizes_ = integers(checked().attribute("shape"));
        strides_ = integers(brief::Object(PyObject_CallMethod(python(), "stride", nullptr)));
        known_ = true;
        return *this;
    }
    static std::vector<int64_t> integers(const brief::Object& sequence) {
        std::vector<int64_t> values(static_cast<size_t>(PyTuple_GET_SIZE(sequence.get())));
        for (size_t index = 0; index < values.size(); ++index)
            values[index] = PyLong_AsLongLong(PyTuple_GET_ITEM(sequence.get(), static_cast<Py_ssize_t>(index)));
        return values;
    }
    size_t wrapped(int64_t axis) const {
        if (axis < -dim() || axis >= dim())
            throw c10::IndexError(brief::joined("Dimension out of range (expected to be in range of [", -dim(), ", ", dim() - 1,
                                                "], but got ", axis, ")"));
        return static_cast<size_t>(axis < 0 ? axis + dim() : axis);
    }
    int64_t integer(const char* method) const {
        return PyLong_AsLongLong(brief::Object(PyObject_CallMethod(checked().get(), method, nullptr)).get());
    }
    template <class... Arguments> brief::Object called(const char* method, const Arguments&... arguments) const {
        const brief::Object function = checked().attribute(method);
        const brief::Object packed[] = {brief::Object::borrow(Py_None), brief::Object(brief::to_python(arguments))...};
        PyObject* raw[sizeof...(arguments) + 1];
        for (size_t index = 0; index < sizeof...(arguments); ++index) raw[index] = packed[index + 1].get();
        return brief::Object(PyObject_Vectorcall(function.get(), raw, sizeof...(arguments), nullptr));
    }
    template <class... Arguments> Tensor call(const char* method, const Arguments&... arguments) const {
        return Tensor(called(method, arguments...).release());
    }
    template <class... Arguments> const Tensor& call_in_place(const char* method, const Arguments&... arguments) const {
        called(method, arguments...);
        return *this;
    }

    brief::Object object_;
    mutable bool known_ = false;
    mutable ScalarType type_ = ScalarType::Undefined;
    mutable std::vector<int64_t> sizes_, strides_;
};

}  // namespace at
