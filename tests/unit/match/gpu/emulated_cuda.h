// CUDA on one thread of the processor, for tests: a fiber for each thread of a block.
//
// A fiber runs until it meets an instruction of its warp, or a barrier of its block, and waits there
// until the others have come. So a kernel whose lanes do not all come stands still, which is an error.

#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __device__
#define __global__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__
#define __restrict__

struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
struct dim3 { unsigned x, y, z; };
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    dim3 thread;
    bool done = false;
    int at = 0;         // the rendezvous that this fiber waits for, counted from 1
    uint64_t given = 0; // what it gives to the others of its warp
};

static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int running;
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static std::vector<uint4> shared_memory;
static uint4* shared;

static void leave() { swapcontext(&fibers[running].context, &scheduler); }

// Go on when all lanes of the warp are here.
static void meet() {
    fibers[running].at++;
    leave();
}
// All lanes of the warp give a value, and go on when all have given theirs.
static void exchange(uint64_t value) {
    fibers[running].given = value;
    meet();
}

static Fiber& lane_of(int lane) { return fibers[running / 32 * 32 + lane]; }
static unsigned __ballot_sync(unsigned, bool value) {
    exchange(value);
    unsigned bits = 0;
    for (int lane = 0; lane < 32; lane++) bits |= (unsigned)(lane_of(lane).given & 1) << lane;
    meet();  // nobody gives another value before all have read this one
    return bits;
}
template <typename T> static T taken(T value, int lane) {
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof(T));
    exchange(bits);
    bits = lane_of(lane).given;
    meet();
    memcpy(&value, &bits, sizeof(T));
    return value;
}
template <typename T> static T __shfl_sync(unsigned, T value, int lane) { return taken(value, lane); }
template <typename T> static T __shfl_up_sync(unsigned, T value, int step) {
    int lane = running % 32;
    return taken(value, lane < step ? lane : lane - step);
}
static void __syncwarp() { meet(); }
static bool block_barrier = false;
static void __syncthreads() { block_barrier = true; meet(); block_barrier = false; }

static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static int __ffs(unsigned bits) { return __builtin_ffs((int)bits); }
static int __clz(unsigned bits) { return bits ? __builtin_clz(bits) : 32; }
static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static int min(int a, int b) { return a < b ? a : b; }
static unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    unsigned out = 0;
    for (int i = 0; i < 4; i++) out |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i;
    return out;
}
static unsigned __vmaxu2(unsigned a, unsigned b) {
    return max(a & 0xffff, b & 0xffff) | max(a >> 16, b >> 16) << 16;
}
static unsigned __vminu2(unsigned a, unsigned b) {
    return min(a & 0xffff, b & 0xffff) | min(a >> 16, b >> 16) << 16;
}
template <typename T> static T atomicAdd(T* where, T more) {
    T before = *where;
    *where += more;
    return before;
}

typedef void (*Body)(void**);
static Body body;
static void** body_arguments;
static void enter() {
    body(body_arguments);
    fibers[running].done = true;
    leave();
}

// Whether all fibers of a group have come as far as one that waits.
static bool ready(int first, int last, int at) {
    for (int i = first; i < last; i++)
        if (!fibers[i].done && fibers[i].at < at) return false;
    return true;
}

static int launch(Body kernel, void** arguments, dim3 grid, int threads, int shared_bytes) {
    body = kernel, body_arguments = arguments;
    gridDim = grid, blockDim = {(unsigned)threads, 1, 1};
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            shared_memory.assign(shared_bytes / 16 + 1, {0xdeadbeef, 0xdeadbeef, 0xdeadbeef, 7});
            shared = shared_memory.data();
            fibers.resize(threads);
            std::vector<int> goes_on(threads, 0), block(threads, 0);
            for (int i = 0; i < threads; i++) {
                Fiber& fiber = fibers[i];
                fiber.stack.resize(1 << 16);
                fiber.thread = {(unsigned)i, 0, 0};
                fiber.done = false, fiber.at = 0;
                getcontext(&fiber.context);
                fiber.context.uc_stack.ss_sp = fiber.stack.data();
                fiber.context.uc_stack.ss_size = fiber.stack.size();
                fiber.context.uc_link = &scheduler;
                makecontext(&fiber.context, enter, 0);
            }
            bool moved = true;
            while (moved) {
                moved = false;
                for (int i = 0; i < threads; i++) {
                    Fiber& fiber = fibers[i];
                    if (fiber.done) continue;
                    int first = block[i] ? 0 : i / 32 * 32, last = block[i] ? threads : first + 32;
                    if (!ready(first, last, fiber.at)) continue;
                    running = i, threadIdx = fiber.thread, blockIdx = {x, y, 0};
                    block_barrier = false;
                    swapcontext(&scheduler, &fiber.context);
                    block[i] = block_barrier;
                    moved = true;
                }
            }
            for (int i = 0; i < threads; i++)
                if (!fibers[i].done) return 1;  // a lane did not come
        }
    return 0;
}
