// In place of tools/server_hooks.cc, in a program without the server. It includes nothing, so that
// it compiles where Inlay is installed, too.
namespace inlay {

struct ServerHooks;
const ServerHooks* FindServerHooks();

const ServerHooks* FindServerHooks() { return nullptr; }

}  // namespace inlay
