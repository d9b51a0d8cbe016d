// Data types, devices, options and shapes: plain values.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "check.h"

namespace at {

enum class ScalarType : int8_t { Byte, Char, Short, Int, Long, Half, Float, Double, Bool, BFloat16, Undefined };
constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte, kChar = ScalarType::Char, kInt8 = ScalarType::Char;
constexpr ScalarType kShort = ScalarType::Short, kInt16 = ScalarType::Short, kInt = ScalarType::Int, kInt32 = ScalarType::Int;
constexpr ScalarType kLong = ScalarType::Long, kInt64 = ScalarType::Long, kHalf = ScalarType::Half, kFloat16 = ScalarType::Half;
constexpr ScalarType kFloat = ScalarType::Float, kFloat32 = ScalarType::Float, kDouble = ScalarType::Double;
constexpr ScalarType kFloat64 = ScalarType::Double, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;

inline const char* toString(ScalarType type) {
    static const char* const names[] = {"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "Bool", "BFloat16",
                                        "Undefined"};
    return names[static_cast<int>(type)];
}
inline std::ostream& operator<<(std::ostream& stream, ScalarType type) { return stream << toString(type); }

namespace brief {

// torch.float32 and so on, kept for the life of the process.
inline PyObject* dtype_object(ScalarType type) {
    static const char* const names[] = {"uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "bool",
                                        "bfloat16"};
    static PyObject* kept[10] = {};
    const int index = static_cast<int>(type);
    if (index >= 10) fail("a tensor's data type is one that this header doesn't know");
    if (!kept[index]) kept[index] = torch_attribute(names[index]).release();
    return kept[index];
}
inline ScalarType scalar_type_of(PyObject* dtype) {
    for (int index = 0; index < 10; ++index)
        if (dtype_object(static_cast<ScalarType>(index)) == dtype) return static_cast<ScalarType>(index);
    return ScalarType::Undefined;
}

template <class T> struct Native;  // no member: a type that tensors don't hold
template <> struct Native<uint8_t> { static constexpr ScalarType type = kByte; };
template <> struct Native<int8_t> { static constexpr ScalarType type = kChar; };
template <> struct Native<int16_t> { static constexpr ScalarType type = kShort; };
template <> struct Native<int32_t> { static constexpr ScalarType type = kInt; };
template <> struct Native<int64_t> { static constexpr ScalarType type = kLong; };
template <> struct Native<long long> { static constexpr ScalarType type = kLong; };
template <> struct Native<float> { static constexpr ScalarType type = kFloat; };
template <> struct Native<double> { static constexpr ScalarType type = kDouble; };
template <> struct Native<bool> { static constexpr ScalarType type = kBool; };

}  // namespace brief

enum class DeviceType : int8_t { CPU, CUDA };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

// Everything here lives on the CPU: this header serves no other device.
class Device {
  public:
    Device(DeviceType type = kCPU, int8_t = -1) : type_(type) {
        TORCH_CHECK(type == kCPU, "this build serves the CPU only");
    }
    DeviceType type() const { return type_; }
    bool is_cpu() const { return type_ == kCPU; }
    bool is_cuda() const { return type_ == kCUDA; }
    bool operator==(const Device& other) const { return type_ == other.type_; }
    bool operator!=(const Device& other) const { return type_ != other.type_; }

  private:
    DeviceType type_;
};
inline std::ostream& operator<<(std::ostream& stream, const Device&) { return stream << "cpu"; }

class TensorOptions {
  public:
    TensorOptions() = default;
    TensorOptions(ScalarType type) : type_(type) {}
    TensorOptions(Device) {}
    TensorOptions(DeviceType type) { Device{type}; }
    TensorOptions dtype(ScalarType type) const {
        TensorOptions options = *this;
        options.type_ = type;
        return options;
    }
    TensorOptions device(Device) const { return *this; }
    TensorOptions device(DeviceType type, int8_t = -1) const { return device(Device{type}); }
    TensorOptions requires_grad(bool wanted) const {
        TORCH_CHECK(!wanted, "candidates run without gradients");
        return *this;
    }
    ScalarType dtype() const { return type_; }

  private:
    ScalarType type_ = kFloat;
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }

// A view of sizes that somebody else owns, as long as the expression it is written in.
class IntArrayRef {
  public:
    IntArrayRef() = default;
    IntArrayRef(const int64_t& one) : begin_(&one), size_(1) {}
    IntArrayRef(const int64_t* begin, size_t size) : begin_(begin), size_(size) {}
    IntArrayRef(const std::vector<int64_t>& values) : begin_(values.data()), size_(values.size()) {}
    IntArrayRef(const std::initializer_list<int64_t>& values) : begin_(values.begin()), size_(values.size()) {}
    template <size_t N> IntArrayRef(const std::array<int64_t, N>& values) : begin_(values.data()), size_(N) {}

    const int64_t* begin() const { return begin_; }
    const int64_t* end() const { return begin_ + size_; }
    const int64_t* data() const { return begin_; }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    int64_t operator[](size_t index) const { return begin_[index]; }
    int64_t front() const { return begin_[0]; }
    int64_t back() const { return begin_[size_ - 1]; }
    std::vector<int64_t> vec() const { return {begin(), end()}; }
    bool equals(IntArrayRef other) const {
        if (size_ != other.size_) return false;
        for (size_t index = 0; index < size_; ++index)
            if (begin_[index] != other.begin_[index]) return false;
        return true;
    }
    bool operator==(IntArrayRef other) const { return equals(other); }
    bool operator!=(IntArrayRef other) const { return !equals(other); }

  private:
    const int64_t* begin_ = nullptr;
    size_t size_ = 0;
};
inline std::ostream& operator<<(std::ostream& stream, IntArrayRef sizes) {
    stream << "[";
    for (size_t index = 0; index < sizes.size(); ++index) stream << (index ? ", " : "") << sizes[index];
    return stream << "]";
}

template <class T> using optional = std::optional<T>;
constexpr auto nullopt = std::nullopt;

// Candidates run without gradients already.
struct NoGradGuard {};

}  // namespace at
