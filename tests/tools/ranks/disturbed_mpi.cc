// MPI's collectives of a forward pass, disturbed as INLAY_TEST_DISTURB says: "late R MS" lets those
// of rank R begin up to MS milliseconds late, "never R N" lets rank R's N-th one never begin. "each
// US" lets all begin US microseconds late at every rank, broadcasts too, as over a network of that
// latency. To be preloaded; PMPI is the profiling interface that MPI has for this.
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

// Not by sleeping, which takes longer than it is told to.
void DelayEach() {
  const char* const text = std::getenv("INLAY_TEST_DISTURB");
  int delay = 0;
  if (text == nullptr || std::sscanf(text, "each %d", &delay) != 1) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(delay);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void Disturb() {
  static long calls = 0;
  static std::mt19937 random(1);
  const char* const text = std::getenv("INLAY_TEST_DISTURB");
  int of = -1, number = 0, rank = 0;
  if (text == nullptr) return;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ++calls;
  if (std::sscanf(text, "late %d %d", &of, &number) == 2 && of == rank) {
    usleep(static_cast<useconds_t>(random() % (1000u * static_cast<unsigned>(number))));
  }
  if (std::sscanf(text, "never %d %d", &of, &number) == 2 && of == rank && calls >= number) {
    for (;;) pause();
  }
}

}  // namespace

int MPI_Allgatherv(const void* from, int n, MPI_Datatype type, void* to, const int* counts,
                   const int* offsets, MPI_Datatype to_type, MPI_Comm comm) {
  Disturb();
  DelayEach();
  return PMPI_Allgatherv(from, n, type, to, counts, offsets, to_type, comm);
}

int MPI_Gatherv(const void* from, int n, MPI_Datatype type, void* to, const int* counts,
                const int* offsets, MPI_Datatype to_type, int root, MPI_Comm comm) {
  Disturb();
  DelayEach();
  return PMPI_Gatherv(from, n, type, to, counts, offsets, to_type, root, comm);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  DelayEach();
  return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  DelayEach();
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}
