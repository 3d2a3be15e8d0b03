// Memory that is kept for when there is none.
#ifndef INLAY_BASE_UNWINDING_MEMORY_H_
#define INLAY_BASE_UNWINDING_MEMORY_H_

namespace inlay {

// From now on the process keeps 8 MiB of addresses aside. Where operator new finds no memory it
// gives them back to the system before it throws std::bad_alloc, so that destructors that take
// little memory (see base/out_of_memory.h) find some while the exception is on its way. Call it
// once, in main() or soon after.
void KeepUnwindingMemory();

// Takes them again, if they were given back and there is memory: whoever has caught std::bad_alloc
// calls this.
void RenewUnwindingMemory() noexcept;

}  // namespace inlay

#endif  // INLAY_BASE_UNWINDING_MEMORY_H_
