// inlay-mpi: the command line at the first rank of an MPI program, whose other ranks compute with
// it.
#include <mpi.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "base/xxh64.h"
#include "gemma_like/ranks/rank_leader.h"
#include "gemma_like/ranks/rank_worker.h"
#include "io/file/mapped_file.h"
#include "tools/cli.h"
#include "tools/demo_model.h"
#include "tools/flags/model_flags.h"
#include "tools/model_loader.h"
#include "tools/ranks/mpi_ranks.h"

namespace inlay {
namespace {

// Of a collective in a forward pass.
constexpr std::chrono::seconds kDeadline(60);

int Fail(size_t rank, const std::string& sentence) {
  if (rank == 0) std::fprintf(stderr, "inlay-mpi: %s\n", sentence.c_str());
  return 1;
}

// The program's bytes, as a hash; 0 if they cannot be read.
uint64_t HashOfProgram() {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(RunningProgram().string());
  return file.ok() ? Xxh64Of(file->bytes().data(), file->bytes().size()) : 0;
}

// The first rank whose program is not that of rank 0; 0 if there is none.
size_t FindOtherProgram(Ranks& ranks) {
  std::vector<uint64_t> hashes(ranks.count());
  hashes[ranks.rank()] = HashOfProgram();
  const std::vector<size_t> sizes(ranks.count(), sizeof(uint64_t));
  ranks.Gather(sizes, reinterpret_cast<char*>(hashes.data()), Ranks::Deadline::kNone);
  for (size_t r = 1; r < hashes.size(); ++r) {
    if (hashes[r] != hashes[0]) return r;
  }
  return 0;
}

// The signals that mpirun sends to ranks, or an operator to the first, are blocked while the
// threads of MPI and of the ranks start: what these inherit keeps them from taking a signal, which
// would end the group before the command has seen it.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : kSignals) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  // The first rank gets them from now on, those included that came meanwhile.
  void Release() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

 private:
  sigset_t before_;
};

int RunRank(int argc, char** argv, const SignalsHeld& signals) {
  std::chrono::milliseconds deadline = kDeadline;
  if (const char* const text = std::getenv("INLAY_RANK_DEADLINE"); text != nullptr) {
    double seconds = 0;
    if (!absl::SimpleAtod(text, &seconds) || !(seconds > 0 && seconds < 1e6)) {
      int rank = 0;
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      return Fail(static_cast<size_t>(rank),
                  std::string("INLAY_RANK_DEADLINE is '") + text + "', not seconds above 0");
    }
    deadline = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000) + 1);
  }
  const auto ranks = std::make_shared<MpiRanks>(deadline);
  if (const size_t other = FindOtherProgram(*ranks); other != 0) {
    return Fail(ranks->rank(),
                "rank " + std::to_string(other) +
                    " runs another program than rank 0: all ranks must run the same");
  }
  if (const absl::Status target = ApplyTarget(); !target.ok()) ranks->Fail(target.message());
  if (ranks->rank() != 0) {
    // Of those that are meant for all ranks, the first decides what follows.
    for (const int signal : SignalsHeld::kSignals) ::signal(signal, SIG_IGN);
    ServeRank(ranks);
    return 0;
  }
  const auto leader = std::make_shared<RankLeader>(ranks);
  SetModelLoader([leader](const std::string& path, const EngineOptions& options) {
    return leader->LoadModel(path, options);
  });
  signals.Release();
  const int status = RunCommandLine(argc, argv);
  SetModelLoader(nullptr);
  return status;
}

}  // namespace
}  // namespace inlay

int main(int argc, char** argv) {
  const inlay::SignalsHeld signals;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    std::fprintf(stderr, "inlay-mpi: this MPI allows calls of its first thread alone\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const int status = inlay::RunRank(argc, argv, signals);
  MPI_Finalize();
  return status;
}
