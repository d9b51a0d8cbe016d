// Measures what this machine can do at most: arithmetic peaks, bandwidths by read/write mix, working set and number of
// threads, the cost of a parallel region and of a page fault. One JSON object a line on stdout, as soon as it is known.
//
//   ceilings THREADS BUDGET_MS ROUNDS BYTES...     BYTES are working sets, over all threads and all arrays of a mix
//
// Everything is measured once a round, so that a neighbour's busy second spoils one round of a figure and not the figure.
// A sample counts as clean when no thread was switched out against its will while it ran. The best clean sample is the
// ceiling; the median beside it tells how steady it was. Vectors are written with the compiler's vector extension, so
// that one source serves AVX-512, AVX2, SSE and other processors; only non-temporal stores need intrinsics.

#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T> struct Vec { typedef T type __attribute__((vector_size(kVectorBytes))); };
using Floats = Vec<float>::type;

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static long involuntary_switches() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// Keeps a value (and what it was computed from) from being optimised away.
template <class T> static void keep(const T &value) { asm volatile("" : : "g"(&value) : "memory"); }

// ---- sampling ------------------------------------------------------------------------------------------------------

struct Rate {
  double best = 0, median = 0;
  size_t clean = 0;
};

// Runs `sample` (which returns seconds) until the budget is used and three samples were clean, for at most four budgets.
template <class Sample> static Rate measure(double work, double budget, Sample sample) {
  std::vector<double> clean, all;
  sample();
  const double start = now();
  do {
    const long before = involuntary_switches();
    const double rate = work / sample();
    all.push_back(rate);
    if (involuntary_switches() == before) clean.push_back(rate);
  } while (now() - start < budget || (clean.size() < 3 && now() - start < 4 * budget));
  Rate result;
  result.clean = clean.size();
  std::vector<double> &used = clean.empty() ? all : clean;
  std::sort(used.begin(), used.end());
  result.best = used.back();
  result.median = used[used.size() / 2];
  return result;
}

// Seconds from the first thread's beginning until the last one's end. No one thread's clock would do: whoever wakes late
// from the barrier begins when others have worked already, and what they did in that time would count for nothing.
template <class Work> static double timed_region(int threads, Work work) {
  double start = std::numeric_limits<double>::infinity(), stop = 0;
#pragma omp parallel num_threads(threads) reduction(min : start) reduction(max : stop)
  {
    const int thread = omp_get_thread_num();
#pragma omp barrier
    start = now();
    work(thread);
    stop = now();
  }
  return stop - start;
}

// ---- arithmetic ----------------------------------------------------------------------------------------------------

// Twelve independent multiply-add chains: more than latency times issue width on any processor we know, and few enough
// for sixteen vector registers.
template <class T> __attribute__((noinline)) static void multiply_add(long iterations, T seed) {
  typedef typename Vec<T>::type V;
  const V factor = V{} + T(0.999), addend = V{} + seed;
  V a[12];
  for (int i = 0; i < 12; i++) a[i] = V{} + T(0.1) * T(i + 1);
  V a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4], a5 = a[5], a6 = a[6], a7 = a[7], a8 = a[8], a9 = a[9],
    a10 = a[10], a11 = a[11];
  for (long k = 0; k < iterations; k++) {
    a0 = a0 * factor + addend; a1 = a1 * factor + addend; a2 = a2 * factor + addend; a3 = a3 * factor + addend;
    a4 = a4 * factor + addend; a5 = a5 * factor + addend; a6 = a6 * factor + addend; a7 = a7 * factor + addend;
    a8 = a8 * factor + addend; a9 = a9 * factor + addend; a10 = a10 * factor + addend; a11 = a11 * factor + addend;
  }
  const V sum = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7)) + ((a8 + a9) + (a10 + a11));
  keep(sum);
}

template <class T> static void arithmetic_peak(const char *name, int threads, double budget) {
  constexpr long iterations = 100000;
  const double flops = 2.0 * 12 * (kVectorBytes / sizeof(T)) * iterations * threads;
  const Rate rate = measure(flops, budget, [&] {
    return timed_region(threads, [](int thread) { multiply_add<T>(iterations, T(1e-3) * T(thread + 1)); });
  });
  std::printf("{\"kind\":\"peak\",\"name\":\"%s\",\"threads\":%d,\"best\":%.3f,\"median\":%.3f,\"clean\":%zu}\n", name,
              threads, rate.best / 1e9, rate.median / 1e9, rate.clean);
  std::fflush(stdout);
}

// ---- memory --------------------------------------------------------------------------------------------------------

enum class Mix { read, write, write_nt, copy, copy_nt, triad };

struct MixShape {
  Mix mix;
  const char *name;
  int arrays;
};

static const MixShape kMixes[] = {
    {Mix::read, "read", 1}, {Mix::write, "write", 1},     {Mix::write_nt, "write_nt", 1},
    {Mix::copy, "copy", 2}, {Mix::copy_nt, "copy_nt", 2}, {Mix::triad, "triad", 3},
};

#if defined(__AVX512F__)
constexpr bool kStreams = true;
static inline void stream(Floats *to, Floats value) { _mm512_stream_ps(reinterpret_cast<float *>(to), (__m512)value); }
static inline void drain() { _mm_sfence(); }
#elif defined(__AVX__)
constexpr bool kStreams = true;
static inline void stream(Floats *to, Floats value) { _mm256_stream_ps(reinterpret_cast<float *>(to), (__m256)value); }
static inline void drain() { _mm_sfence(); }
#elif defined(__SSE2__)
constexpr bool kStreams = true;
static inline void stream(Floats *to, Floats value) { _mm_stream_ps(reinterpret_cast<float *>(to), (__m128)value); }
static inline void drain() { _mm_sfence(); }
#else
constexpr bool kStreams = false;
static inline void stream(Floats *to, Floats value) { *to = value; }
static inline void drain() {}
#endif

// All sweeps take whole groups of eight vectors. The empty asm keeps the compiler from turning a loop into a call of
// memcpy or memset, whose choice of stores would be theirs.
__attribute__((noinline)) static void sweep_read(const Floats *b, size_t n) {
  Floats s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{};
  for (size_t i = 0; i < n; i += 8) {
    s0 += b[i]; s1 += b[i + 1]; s2 += b[i + 2]; s3 += b[i + 3];
    s4 += b[i + 4]; s5 += b[i + 5]; s6 += b[i + 6]; s7 += b[i + 7];
  }
  const Floats sum = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));
  keep(sum);
}

template <bool kStream, class Value> static inline void sweep_store(Floats *to, size_t n, Value value) {
  for (size_t i = 0; i < n; i += 8) {
    for (int k = 0; k < 8; k++) {
      if (kStream) stream(to + i + k, value(i + k));
      else to[i + k] = value(i + k);
    }
    asm volatile("" : : : "memory");
  }
  if (kStream) drain();
}

static void sweep(Mix mix, Floats *a, const Floats *b, const Floats *c, size_t n) {
  const Floats constant = Floats{} + 1.5f;
  switch (mix) {
    case Mix::read: sweep_read(a, n); break;
    case Mix::write: sweep_store<false>(a, n, [&](size_t) { return constant; }); break;
    case Mix::write_nt: sweep_store<true>(a, n, [&](size_t) { return constant; }); break;
    case Mix::copy: sweep_store<false>(a, n, [&](size_t i) { return b[i]; }); break;
    case Mix::copy_nt: sweep_store<true>(a, n, [&](size_t i) { return b[i]; }); break;
    case Mix::triad: sweep_store<false>(a, n, [&](size_t i) { return b[i] + constant * c[i]; }); break;
  }
}

struct Arena {
  char *base;
  size_t bytes;
};

// Huge pages where the kernel gives them, so that it is memory and not address translation that is measured.
static Arena arena_of(size_t bytes) {
  const size_t huge = size_t(2) << 20;
  bytes = (bytes + huge - 1) / huge * huge + huge;
  void *base = nullptr;
  if (posix_memalign(&base, huge, bytes) != 0) {
    std::fprintf(stderr, "could not allocate %zu bytes\n", bytes);
    std::exit(3);
  }
  madvise(base, bytes, MADV_HUGEPAGE);
  return {static_cast<char *>(base), bytes};
}

static void bandwidth(const Arena &arena, const MixShape &shape, size_t working_set, int threads, double budget) {
  const size_t group = 8 * kVectorBytes;
  // Arrays of one thread lie side by side; an odd number of lines between them keeps equal indices out of equal sets.
  const size_t gap = 5 * 128;
  const size_t each = working_set / (size_t(threads) * shape.arrays) / group * group;
  const size_t stride = (shape.arrays * (each + gap) + 4095) / 4096 * 4096;
  if (each == 0 || stride * threads > arena.bytes) return;
  const double bytes_a_sweep = double(each) * shape.arrays * threads;
  const long repeats = std::max(1L, long(double(size_t(12) << 20) * threads / bytes_a_sweep));
  auto work = [&](int thread) {
    char *mine = arena.base + stride * thread;
    auto at = [&](int k) { return reinterpret_cast<Floats *>(mine + k * (each + gap)); };
    for (long r = 0; r < repeats; r++) sweep(shape.mix, at(0), at(shape.arrays > 1), at(shape.arrays > 2 ? 2 : 0), each / kVectorBytes);
  };
  const Rate rate = measure(bytes_a_sweep * repeats, budget, [&] { return timed_region(threads, work); });
  std::printf(
      "{\"kind\":\"bandwidth\",\"mix\":\"%s\",\"bytes\":%zu,\"threads\":%d,\"best\":%.3f,\"median\":%.3f,\"clean\":%zu}\n",
      shape.name, working_set, threads, rate.best / 1e9, rate.median / 1e9, rate.clean);
  std::fflush(stdout);
}

// ---- costs ---------------------------------------------------------------------------------------------------------

static void report_cost(const char *name, double seconds) {
  std::printf("{\"kind\":\"cost\",\"name\":\"%s\",\"us\":%.4f}\n", name, seconds * 1e6);
  std::fflush(stdout);
}

static void parallel_region_cost(int threads) {
  constexpr int regions = 500;
  double best = 1;
  for (int r = 0; r < 20; r++) {
    const double start = now();
    for (int i = 0; i < regions; i++) {
#pragma omp parallel num_threads(threads)
      asm volatile("");
    }
    best = std::min(best, (now() - start) / regions);
  }
  report_cost("parallel_region", best);
}

// First touch of fresh pages of the base size, one thread.
static void page_fault_cost() {
  constexpr size_t page = 4096, pages = 4096;
  double best = 1;
  for (int r = 0; r < 8; r++) {
    void *fresh = mmap(nullptr, page * pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return;
    madvise(fresh, page * pages, MADV_NOHUGEPAGE);
    volatile char *byte = static_cast<char *>(fresh);
    const double start = now();
    for (size_t i = 0; i < pages; i++) byte[i * page] = 1;
    best = std::min(best, (now() - start) / pages);
    munmap(fresh, page * pages);
  }
  report_cost("page_fault", best);
}

int main(int argc, char **argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: ceilings THREADS BUDGET_MS ROUNDS BYTES...\n");
    return 2;
  }
  const int all = std::max(1, std::atoi(argv[1]));
  const double budget = std::atof(argv[2]) / 1e3;
  const int rounds = std::max(1, std::atoi(argv[3]));
  std::vector<size_t> sizes;
  for (int i = 4; i < argc; i++) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  std::vector<int> counts = {1};
  if (all > 1) counts.push_back(all);
  omp_set_dynamic(0);
  std::printf("{\"kind\":\"machine\",\"vector_bits\":%d}\n", kVectorBytes * 8);

  const size_t largest = *std::max_element(sizes.begin(), sizes.end());
  const Arena arena = arena_of(largest + size_t(all) * 64 * 1024);
#pragma omp parallel num_threads(all)
  {
    // Each thread touches its share first, so that pages lie near it where memory is not uniform.
    const size_t share = arena.bytes / all;
    char *mine = arena.base + share * omp_get_thread_num();
    for (size_t i = 0; i < share; i += 4096) mine[i] = 1;
  }
  for (int round = 0; round < rounds; round++) {
    for (int threads : counts) {
      arithmetic_peak<float>("fp32", threads, budget);
      arithmetic_peak<double>("fp64", threads, budget);
    }
    parallel_region_cost(all);
    page_fault_cost();
    for (size_t bytes : sizes)
      for (int threads : counts)
        for (const MixShape &shape : kMixes)
          if (kStreams || (shape.mix != Mix::write_nt && shape.mix != Mix::copy_nt))
            bandwidth(arena, shape, bytes, threads, budget);
  }
  return 0;
}
