/* Times copies of `size` bytes: what moving the bytes of a workload costs at least.
 *
 * place 0: into memory that is in use already. 1: into memory allocated for the copy
 * and freed after it, as a result is. 2: the same, asking for huge pages, which big
 * results need lest page faults cost more than the copy.
 */
#define _GNU_SOURCE
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const size_t kPage = 4096, kHugePage = 2 << 20;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

static char* get(size_t size, int huge) {
  void* memory = NULL;
  huge = huge && size >= 2 * kHugePage;
  if (posix_memalign(&memory, huge ? kHugePage : 64, size))
    return NULL;
  if (huge)
    madvise(memory, size, MADV_HUGEPAGE);
  return memory;
}

static void copy(char* to, const char* from, size_t size, int threads) {
  size_t share = (size / threads + kPage) / kPage * kPage;
#pragma omp parallel for num_threads(threads) \
    schedule(static, 1) if (threads > 1)
  for (int i = 0; i < threads; ++i) {
    size_t begin = i * share;
    if (begin < size) {
      memcpy(
          to + begin, from + begin,
          size - begin < share ? size - begin : share);
    }
  }
}

/* glibc keeps freed memory for the next call up to the size of the largest mapped chunk
 * that was freed, 32 MB at most: the state of any process that computes with arrays. */
static void age_allocator(void) {
  static int done = 0;
  if (!done) {
    void* volatile memory = malloc(31 << 20);
    free(memory);
    done = 1;
  }
}

/* The mean time of `count` copies, or a negative number without enough memory. */
double copy_seconds(size_t size, int threads, int place, int count) {
  age_allocator();
  char *from = get(size, 1), *kept = place == 0 ? get(size, 1) : NULL;
  double spent = -1;
  if (from && (kept || place)) {
    memset(from, 1, size);
    if (kept)
      memset(kept, 2, size);
    /* Wakes the threads. */
    copy(kept ? kept : from + size, from, kept ? size : 0, threads);
    spent = seconds();
    for (int i = 0; i < count; ++i) {
      char* to = kept ? kept : get(size, place == 2);
      if (!to)
        abort();
      copy(to, from, size, threads);
      __asm__ volatile("" : : "r"(to) : "memory");
      if (!kept)
        free(to);
    }
    spent = (seconds() - spent) / count;
  }
  free(kept);
  free(from);
  return spent;
}
