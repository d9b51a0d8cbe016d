"""C++ that kernels are printed on top of: vectors, loads and stores, choices, conversions. `elementary` adds functions.

Each piece is included only where it is used. Everything is a template over V, which is a vector of L elements or, at
L = 1, a plain number: so the same text serves loops that the compiler vectorises.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Piece:
    """Some text, and the pieces it stands on."""

    text: str
    needs: tuple[str, ...] = ()


def text_of(names: Iterable[str]) -> str:
    """The text of these pieces and of all they need, in an order that compiles."""
    from apps.agents.builtin.cpp import elementary  # noqa: F401  (adds its pieces)

    wanted: set[str] = set()

    def want(name: str) -> None:
        if name not in wanted:
            wanted.add(name)
            for need in PIECES[name].needs:
                want(need)

    for name in names:
        want(name)
    return "\n".join(piece.text.strip() for name, piece in PIECES.items() if name in wanted)


PIECES: dict[str, Piece] = {}


def add_piece(name: str, text: str, *needs: str) -> None:
    """A piece by name, with the names of those it stands on."""
    PIECES[name] = Piece(text, needs)


add_piece("lesser", "inline int64_t lesser(int64_t a, int64_t b) { return a < b ? a : b; }")
add_piece("vec", """
// A vector of L elements; at L = 1 a plain number.
template <class T, int L> struct Vector { typedef T type __attribute__((vector_size(sizeof(T) * L))); };
template <class T> struct Vector<T, 1> { typedef T type; };
template <class T, int L> using vec = typename Vector<T, L>::type;
template <class V, class = void> struct Element { using type = V; };
template <class V> struct Element<V, std::void_t<decltype(std::declval<V&>()[0])>> {
  using type = std::decay_t<decltype(std::declval<V&>()[0])>;
};
template <class V> using element = typename Element<V>::type;
template <class V> constexpr int lanes = sizeof(V) / sizeof(element<V>);
template <class T, class V> using like = vec<T, lanes<V>>;
""")  # fmt: skip
add_piece("splat", """
template <class V> inline V splat(element<V> s) {
  if constexpr (lanes<V> == 1) return s; else return s - V{};
}
""", "vec")  # fmt: skip
add_piece("convert", """
template <class T, class V> inline like<T, V> convert(V v) {
  if constexpr (lanes<V> == 1) return static_cast<T>(v); else return __builtin_convertvector(v, like<T, V>);
}
""", "vec")  # fmt: skip
add_piece(
    "bits",
    """
template <class To, class From> inline To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
""",
)
add_piece("select", """
// A comparison of vectors gives a vector of 0 and -1 as wide as what was compared; mask<V> makes it as wide as V.
template <int Bytes> struct Whole { using type = int32_t; };
template <> struct Whole<8> { using type = int64_t; };
template <class V, class M> inline auto mask(M m) {
  using I = typename Whole<sizeof(element<V>)>::type;
  if constexpr (lanes<V> == 1) return bool(m);
  else if constexpr (lanes<M> == 1) return like<I, V>{} - (m ? 1 : 0);
  else if constexpr (sizeof(M) == sizeof(V)) return m;
  else return __builtin_convertvector(m, like<I, V>);
}
template <class M, class V> inline V select(M m, V a, V b) {
  if constexpr (lanes<M> == 1) return m ? a : b; else return mask<V>(m) ? a : b;
}
""", "vec")  # fmt: skip
add_piece("logic", """
template <class M, class N> inline auto both(M m, N n) {
  if constexpr (lanes<M> == 1 && lanes<N> == 1) return bool(m & n);
  else if constexpr (lanes<M> == 1) return mask<N>(m) & n;
  else return m & mask<M>(n);
}
template <class M, class N> inline auto either(M m, N n) {
  if constexpr (lanes<M> == 1 && lanes<N> == 1) return bool(m | n);
  else if constexpr (lanes<M> == 1) return mask<N>(m) | n;
  else return m | mask<M>(n);
}
template <class M> inline auto negated(M m) {
  if constexpr (lanes<M> == 1) return !m; else return ~m;
}
""", "select")  # fmt: skip
add_piece("truth", """
template <class V, class M> inline V number(M m) { return select(m, splat<V>(1), splat<V>(0)); }
""", "select", "splat")  # fmt: skip
add_piece("load", """
template <class V, class T> inline V load(const T* p) {
  vec<T, lanes<V>> v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (std::is_same_v<T, element<V>>) return v; else return convert<element<V>>(v);
}
""", "convert")  # fmt: skip
add_piece("load_apart", """
// Elements p[0], p[-1], .. and p[0], p[2], ..; nothing beyond the last of them is read.
template <class V, class T, int... l> inline V load_backwards(const T* p, std::integer_sequence<int, l...>) {
  const V v = load<V>(p - (lanes<V> - 1));
  return __builtin_shufflevector(v, v, (lanes<V> - 1 - l)...);
}
template <class V, class T> inline V load_backwards(const T* p) {
  return load_backwards<V>(p, std::make_integer_sequence<int, lanes<V>>());
}
template <class V, class T, int... l> inline V load_every_other(const T* p, std::integer_sequence<int, l...>) {
  return __builtin_shufflevector(load<V>(p), load<V>(p + lanes<V> - 1), (2 * l < lanes<V> ? 2 * l : 2 * l + 1)...);
}
template <class V, class T> inline V load_every_other(const T* p) {
  return load_every_other<V>(p, std::make_integer_sequence<int, lanes<V>>());
}
""", "load")  # fmt: skip
add_piece("scan_lanes", """
// Each element combined with all before it, in steps of 1, 2, 4, ..; `none` holds what changes nothing.
template <int Step, class V, int... l> inline V moved_up(V none, V v, std::integer_sequence<int, l...>) {
  return __builtin_shufflevector(none, v, (l < Step ? l : lanes<V> + l - Step)...);
}
template <int Step = 1, class V, class F> inline V scan_lanes(V v, V none, F combine) {
  if constexpr (Step < lanes<V>) {
    const V before = moved_up<Step>(none, v, std::make_integer_sequence<int, lanes<V>>());
    return scan_lanes<2 * Step>(combine(before, v), none, combine);
  } else return v;
}
""", "vec")  # fmt: skip
add_piece("load_truth", """
template <int L> inline auto load_truth(const uint8_t* p) {
  if constexpr (L == 1) return *p != 0; else return load<vec<int32_t, L>>(p) != 0;
}
""", "load")  # fmt: skip
add_piece("store", """
template <class T, class V> inline void store(T* p, V v) {
  if constexpr (lanes<V> > 4 && sizeof(like<T, V>) > sizeof v) {
    vec<element<V>, lanes<V> / 2> half[2];
    std::memcpy(half, &v, sizeof v);
    store(p, half[0]);
    store(p + lanes<V> / 2, half[1]);
  } else {
    const like<T, V> w = convert<T>(v);
    std::memcpy(p, &w, sizeof w);
  }
}
""", "convert")  # fmt: skip
add_piece("store_backwards", """
template <class T, class V, int... l> inline void store_backwards(T* p, V v, std::integer_sequence<int, l...>) {
  store(p - (lanes<V> - 1), __builtin_shufflevector(v, v, (lanes<V> - 1 - l)...));
}
template <class T, class V> inline void store_backwards(T* p, V v) {
  store_backwards(p, v, std::make_integer_sequence<int, lanes<V>>());
}
""", "store")  # fmt: skip
add_piece("store_truth", """
template <int L, class M> inline void store_truth(uint8_t* p, M m) {
  if constexpr (L == 1) *p = m ? 1 : 0;
  else store(p, number<vec<int32_t, L>>(m));
}
""", "store", "truth")  # fmt: skip
add_piece("bfloat16", """
struct bfloat16 { uint16_t word; };
template <class V> inline V load(const bfloat16* p) {
  return bits<V>(load<like<uint32_t, V>>(&p->word) << 16);
}
template <class V> inline V round_bfloat16(V v) {
  auto u = bits<like<uint32_t, V>>(v);
  u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000u;
  return select(v != v, v, bits<V>(u));
}
template <class V> inline void store(bfloat16* p, V v) {
  store(&p->word, bits<like<uint32_t, V>>(round_bfloat16(v)) >> 16);
}
""", "load", "store", "bits", "select")  # fmt: skip
add_piece("float16", """
template <class V> inline V load(const _Float16* p) {
  if constexpr (lanes<V> == 1) return static_cast<V>(*p);
  else { V v; for (int l = 0; l < lanes<V>; ++l) v[l] = static_cast<float>(p[l]); return v; }
}
template <class V> inline void store(_Float16* p, V v) {
  if constexpr (lanes<V> == 1) *p = static_cast<_Float16>(v);
  else for (int l = 0; l < lanes<V>; ++l) p[l] = static_cast<_Float16>(v[l]);
}
template <class V> inline V round_float16(V v) {
  if constexpr (lanes<V> == 1) return static_cast<float>(static_cast<_Float16>(v));
  else { for (int l = 0; l < lanes<V>; ++l) v[l] = static_cast<float>(static_cast<_Float16>(v[l])); return v; }
}
""", "vec")  # fmt: skip
add_piece("stream", """
// Past the caches: the line is not read before it is written. The address must be aligned to the vector.
template <class T, class V> inline void stream(T* p, V v) {
  const like<T, V> w = v;
#if defined(__AVX512F__)
  if constexpr (sizeof w == 64) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), bits<__m512i>(w)); return; }
#endif
#if defined(__AVX__)
  if constexpr (sizeof w == 32) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), bits<__m256i>(w)); return; }
#endif
#if defined(__SSE2__)
  if constexpr (sizeof w == 16) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), bits<__m128i>(w)); return; }
#endif
  std::memcpy(p, &w, sizeof w);
}
inline void streamed() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
""", "vec", "bits")  # fmt: skip
add_piece("counting", """
template <class V> inline V counting(int64_t first, int64_t step) {
  if constexpr (lanes<V> == 1) return static_cast<V>(first);
  else { V v; for (int l = 0; l < lanes<V>; ++l) v[l] = static_cast<element<V>>(first + l * step); return v; }
}
""", "vec")  # fmt: skip
add_piece("gather", """
template <class V, class F> inline V gather(F at) {
  if constexpr (lanes<V> == 1) return at(0);
  else { V v; for (int l = 0; l < lanes<V>; ++l) v[l] = at(l); return v; }
}
""", "vec")  # fmt: skip
add_piece("each", """
// A function of the library, for each element.
template <class V, class F, class... W> inline V each(F f, V v, W... w) {
  if constexpr (lanes<V> == 1) return f(v, w...);
  else { for (int l = 0; l < lanes<V>; ++l) v[l] = f(v[l], w[l]...); return v; }
}
""", "vec")  # fmt: skip
add_piece("fold_lanes", """
template <class V, class F> inline element<V> fold_lanes(V v, F combine) {
  if constexpr (lanes<V> == 1) return v;
  else {
    vec<element<V>, lanes<V> / 2> half[2];
    std::memcpy(half, &v, sizeof v);
    return fold_lanes(combine(half[0], half[1]), combine);
  }
}
""", "vec")  # fmt: skip
add_piece("bounded", """
// The smaller or larger of a bound that is a number and x; NaN passes through, as the instructions' second operand does.
template <class V> inline V at_most(V bound, V x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, vec<float, 16>>) return bits<V>(_mm512_min_ps(bits<__m512>(bound), bits<__m512>(x)));
  else if constexpr (std::is_same_v<V, vec<double, 8>>) return bits<V>(_mm512_min_pd(bits<__m512d>(bound), bits<__m512d>(x)));
  else
#endif
#if defined(__AVX__)
  if constexpr (std::is_same_v<V, vec<float, 8>>) return bits<V>(_mm256_min_ps(bits<__m256>(bound), bits<__m256>(x)));
  else if constexpr (std::is_same_v<V, vec<double, 4>>) return bits<V>(_mm256_min_pd(bits<__m256d>(bound), bits<__m256d>(x)));
  else
#endif
#if defined(__SSE2__)
  if constexpr (std::is_same_v<V, vec<float, 4>>) return bits<V>(_mm_min_ps(bits<__m128>(bound), bits<__m128>(x)));
  else
#endif
  return select(x > bound, bound, x);
}
template <class V> inline V at_least(V bound, V x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<V, vec<float, 16>>) return bits<V>(_mm512_max_ps(bits<__m512>(bound), bits<__m512>(x)));
  else if constexpr (std::is_same_v<V, vec<double, 8>>) return bits<V>(_mm512_max_pd(bits<__m512d>(bound), bits<__m512d>(x)));
  else
#endif
#if defined(__AVX__)
  if constexpr (std::is_same_v<V, vec<float, 8>>) return bits<V>(_mm256_max_ps(bits<__m256>(bound), bits<__m256>(x)));
  else if constexpr (std::is_same_v<V, vec<double, 4>>) return bits<V>(_mm256_max_pd(bits<__m256d>(bound), bits<__m256d>(x)));
  else
#endif
#if defined(__SSE2__)
  if constexpr (std::is_same_v<V, vec<float, 4>>) return bits<V>(_mm_max_ps(bits<__m128>(bound), bits<__m128>(x)));
  else
#endif
  return select(x < bound, bound, x);
}
""", "select", "bits")  # fmt: skip
add_piece("maximum", """
template <class V> inline V maximum(V a, V b) { return select(a != a, a, at_least(a, b)); }
""", "bounded")  # fmt: skip
add_piece("minimum", """
template <class V> inline V minimum(V a, V b) { return select(a != a, a, at_most(a, b)); }
""", "bounded")  # fmt: skip
add_piece("absolute", """
template <class V> inline V absolute(V x) {
  using T = element<V>;
  if constexpr (!std::is_floating_point_v<T>) return select(x < 0, -x, x);
  else if constexpr (lanes<V> == 1) return std::fabs(x);
  else {
    using U = like<std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, V>;
    return bits<V>(bits<U>(x) & (~U{} >> 1));
  }
}
""", "select", "bits")  # fmt: skip
add_piece("signed_like", """
template <class V> inline V signed_like(V size, V sign) {
  using U = like<std::conditional_t<sizeof(element<V>) == 8, uint64_t, uint32_t>, V>;
  const U low = ~U{} >> 1;
  return bits<V>((bits<U>(size) & low) | (bits<U>(sign) & ~low));
}
""", "vec", "bits")  # fmt: skip
add_piece("sign_of", """
template <class V> inline V sign_of(V x) {
  return select(x > 0, splat<V>(1), select(x < 0, splat<V>(-1), splat<V>(0)));
}
""", "select", "splat")  # fmt: skip
add_piece("root", """
template <class V> inline V root(V x) {
  if constexpr (lanes<V> == 1) return std::sqrt(x);
#if defined(__AVX512F__)
  else if constexpr (sizeof x == 64 && sizeof(element<V>) == 4) return bits<V>(_mm512_sqrt_ps(bits<__m512>(x)));
  else if constexpr (sizeof x == 64) return bits<V>(_mm512_sqrt_pd(bits<__m512d>(x)));
#endif
#if defined(__AVX__)
  else if constexpr (sizeof x == 32 && sizeof(element<V>) == 4) return bits<V>(_mm256_sqrt_ps(bits<__m256>(x)));
  else if constexpr (sizeof x == 32) return bits<V>(_mm256_sqrt_pd(bits<__m256d>(x)));
#endif
  else { for (int l = 0; l < lanes<V>; ++l) x[l] = std::sqrt(x[l]); return x; }
}
""", "bits", "vec")  # fmt: skip
add_piece("whole", """
// Beyond 2^23 (2^52) every number is whole; below, a conversion to integers and back cuts the fraction off.
template <class V> inline V cut(V x) {
  using T = element<V>;
  using I = typename Whole<sizeof(T)>::type;
  const T large = sizeof(T) == 8 ? T(4503599627370496.0) : T(8388608.0);
  const auto small = absolute(x) < large;
  const V safe = select(small, x, V{});
  return select(small, signed_like(convert<T>(convert<I>(safe)), x), x);
}
template <class V> inline V floor_of(V x) {
  const V t = cut(x);
  return signed_like(select(t > x, t - 1, t), x);
}
template <class V> inline V ceil_of(V x) {
  const V t = cut(x);
  return signed_like(select(t < x, t + 1, t), x);
}
template <class V> inline V round_of(V x) {
  using T = element<V>;
  const T large = sizeof(T) == 8 ? T(4503599627370496.0) : T(8388608.0);
  const V a = absolute(x);
  return select(a < large, signed_like((a + large) - large, x), x);
}
""", "absolute", "signed_like", "select", "convert", "vec")  # fmt: skip
add_piece("floor_divide", """
template <class V> inline V floor_divide(V a, V b) {
  if constexpr (std::is_floating_point_v<element<V>>) return floor_of(a / b);
  else {
    const V safe = select(b == 0, splat<V>(1), b);
    const V q = a / safe;
    return select(both(a % safe != 0, (a < 0) != (safe < 0)), q - 1, q);
  }
}
template <class V> inline V floor_remainder(V a, V b) {
  if constexpr (std::is_floating_point_v<element<V>>) {
    const V r = each([](auto x, auto y) { return std::fmod(x, y); }, a, b);
    return select(both(r != 0, either(both(r < 0, b > 0), both(r > 0, b < 0))), r + b, r);
  } else return a - floor_divide(a, b) * b;
}
""", "whole", "logic", "each", "splat", "select")  # fmt: skip
