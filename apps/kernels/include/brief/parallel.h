// at::parallel_for over OpenMP, cutting a range as ATen does. Without -fopenmp it is a plain call, as with Torch's headers.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace at {

inline int get_num_threads() {
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}
inline int get_thread_num() {
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}
inline bool in_parallel_region() {
#ifdef _OPENMP
    return omp_in_parallel();
#else
    return false;
#endif
}

// Calls body(from, to) on pieces of [begin, end) of at least `grain` elements; an exception is thrown again in the caller.
template <class Body> void parallel_for(int64_t begin, int64_t end, int64_t grain, const Body& body) {
    if (begin >= end) return;
#ifdef _OPENMP
    const int64_t count = end - begin;
    int64_t threads = get_num_threads();
    if (grain > 0) threads = std::min(threads, (count + grain - 1) / grain);
    if (threads > 1 && !in_parallel_region()) {
        std::atomic_flag failed = ATOMIC_FLAG_INIT;
        std::exception_ptr failure;
#pragma omp parallel num_threads(static_cast<int>(threads))
        {
            const int64_t used = omp_get_num_threads();
            const int64_t piece = (count + used - 1) / used;
            const int64_t from = begin + omp_get_thread_num() * piece;
            if (from < end) {
                try {
                    body(from, std::min(end, from + piece));
                } catch (...) {
                    if (!failed.test_and_set()) failure = std::current_exception();
                }
            }
        }
        if (failure) std::rethrow_exception(failure);
        return;
    }
#endif
    body(begin, end);
}

}  // namespace at
