"""Elementary functions in line, on top of the vectors of `functions`. Coefficients: bench/fit_polynomials.py."""

from __future__ import annotations

from apps.agents.builtin.cpp.functions import add_piece

add_piece("poly", """
template <class V> inline V poly(V, float c) { return splat<V>(c); }
template <class V, class... C> inline V poly_from(V, V p) { return p; }
template <class V, class... C> inline V poly_from(V x, V p, float c, C... more) { return poly_from(x, p * x + c, more...); }
template <class V, class... C> inline V poly(V x, float c, C... more) { return poly_from(x, splat<V>(c), more...); }
""", "splat")  # fmt: skip
add_piece("scaled", """
// x times 2^n for whole n from -300 to 300; without the instruction in two factors, so that the ends are right.
template <class V> inline V scaled(V x, V n) {
#if defined(__AVX512F__)
  if constexpr (sizeof x == 64) return bits<V>(_mm512_scalef_ps(bits<__m512>(x), bits<__m512>(n)));
  else
#endif
  {
    using I = like<int32_t, V>;
    const I k = convert<int32_t>(n);
    const I half = k >> 1;
    return x * bits<V>((half + 127) << 23) * bits<V>((k - half + 127) << 23);
  }
}
""", "bits", "convert")  # fmt: skip
add_piece("exponential", """
// exp(x) = 2^n exp(r), |r| <= log(2) / 2: n by adding 1.5 * 2^23, which leaves n in the lowest bits of the sum. Without an
// instruction that scales, 2 exp(r) times 2^(n - 1): right up to the largest number; below 1.7e-38 the result is 0.
template <class V> inline V exponential(V x) {
#if defined(__AVX512F__)
  if constexpr (sizeof x == 64) {
    x = at_least(splat<V>(-104.0f), at_most(splat<V>(89.0f), x));
    const V n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    const V r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    const V q = poly(r, 0.001394112229f, 0.008363181893f, 0.04166637516f, 0.1666657697f, 0.5000000027f);
    return scaled((r * r) * q + r + 1.0f, n);
  } else
#endif
  {
    using U = like<uint32_t, V>;
    x = at_least(splat<V>(-87.6f), at_most(splat<V>(89.0f), x));
    const V t = x * 1.44269504f + 12582912.0f;
    const V n = t - 12582912.0f;
    const V r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    const V q = poly(r, 0.002788224458f, 0.016726363786f, 0.08333275032f, 0.3333315394f, 1.0000000054f);
    return ((r * r) * q + (r + r) + 2.0f) * bits<V>((bits<U>(t) << 23) + 0x3f000000u);
  }
}
""", "poly", "bounded", "scaled")  # fmt: skip
add_piece("exponential_less_1", """
template <class V> inline V exponential_less_1(V x) {
  x = at_least(splat<V>(-25.0f), at_most(splat<V>(89.0f), x));
  const V n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const V r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
  const V q = poly(r, 0.0001990754839f, 0.001393365301f, 0.008333286061f, 0.04166646489f, 0.1666666676f, 0.5000000013f);
  const V e = (r * r) * q + r;
  const V half = scaled(splat<V>(0.5f), n);
  return 2.0f * (half * e + (half - 0.5f));
}
""", "poly", "bounded", "scaled")  # fmt: skip
add_piece("logarithm", """
// log(x) = k log(2) + log(m), sqrt(1/2) <= m < sqrt(2).
template <class V> inline V logarithm(V x) {
  using I = like<int32_t, V>;
  const auto tiny = x < 1.17549435e-38f;
  const V y = select(tiny, x * 8388608.0f, x);
  const I i = bits<I>(y) - 0x3f3504f3;
  const V k = convert<float>(i >> 23) - select(tiny, splat<V>(23.0f), V{});
  const V r = bits<V>((i & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const V q = poly(r, -0.07634765384f, 0.1276173599f, -0.1316015139f, 0.1420173098f, -0.1662335778f, 0.200012283f,
                   -0.2500082106f, 0.3333333168f);
  const V s = r * r;
  const V found = k * 0.693145752f + (r + (s * r * q - 0.5f * s + k * 1.42860677e-6f));
  const V outside = select(x == 0.0f, splat<V>(-INFINITY), select(x < 0.0f, splat<V>(NAN), x));
  return select(both(x > 0.0f, x < INFINITY), found, outside);
}
""", "poly", "bits", "select", "convert", "logic")  # fmt: skip
add_piece("logarithm_1_plus", """
// log(1 + x): what rounding 1 + x lost comes back as a correction.
template <class V> inline V logarithm_1_plus(V x) {
  const V u = 1.0f + x;
  const V l = logarithm(u);
  return select(both(x > -1.0f, x < INFINITY), l + (x - (u - 1.0f)) / u, l);
}
""", "logarithm")  # fmt: skip
add_piece("hyperbolic_tangent", """
// tanh(x) = e / (e + 2) with e = exp(2 |x|) - 1, which is right for small x too; beyond 10 it is 1.
template <class V> inline V hyperbolic_tangent(V x) {
  const V a = at_most(splat<V>(10.0f), absolute(x));
  const V e = exponential_less_1(a + a);
  return signed_like(e / (e + 2.0f), x);
}
""", "exponential_less_1", "absolute", "signed_like")  # fmt: skip
add_piece("error_function", """
// erf(x) = x p(x^2) / q(x^2) up to 3.92; from there on it is 1 to the last bit.
template <class V> inline V error_function(V x) {
  const V s = at_most(splat<V>(15.4f), x * x);
  const V p = poly(s, 2.046002625e-6f, 0.0002848448034f, 0.003772638115f, 0.05276957317f, 0.1905959047f, 1.128379146f);
  const V q = poly(s, 3.804758222e-5f, 0.001163877662f, 0.01498337681f, 0.1141836011f, 0.5022439529f, 1.0f);
  return select(s >= 15.3664f, signed_like(splat<V>(1.0f), x), x * p / q);
}
""", "poly", "bounded", "select", "signed_like")  # fmt: skip
add_piece("logistic", """
template <class V> inline V logistic(V x) { return 1.0f / (1.0f + exponential(-x)); }
""", "exponential")  # fmt: skip
