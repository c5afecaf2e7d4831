// The kernels of the matcher `tamis-gpu`. `simulated_device.py` has the same in NumPy.
//
// Compiled with COLUMNS (even), SHARED_LINES and SHARED_BOUNDS (0 or 1), and WARPS (of a block of
// `find`). TILE, NOT_BOUND, FIRST_GAP, OPEN_LOW, OPEN_HIGH and SEVERAL are in `layout.py` too.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define TILE 4096             // clauses of a tile: a line of bits has 128 words, four for each lane
#define TILE_BITS 12
#define WORDS (TILE / 32)
#define EVERY 0xffffffffu     // all lanes of a warp
#define NO_EVENT 0xffffffffu
#define HAS_SEVERAL 0x80000000u  // of a candidate, if its event has several values of a column
#define QUEUE 128             // candidates that a warp collects
#define STRIDE ((COLUMNS + 8) / 8 * 8)  // places of an event, then whether any is SEVERAL
#define SEVERAL 0xffffu       // in place of a line: the event has several values of the attribute

// Ranks. An event has NOT_BOUND, or FIRST_GAP + 2 i + 1 at edge i, or FIRST_GAP + 2 i below it.
#define NOT_BOUND 1u
#define OPEN_LOW 2u
#define FIRST_GAP 4u
#define LAST_RANK 65534u
#define OPEN_HIGH 65535u
#define ODD 0x00010001u  // of two ranks in a word

#define SOME 0
#define NONE 1
#define MISSING 2
#define LOWEST (-0x7fffffffffffffffLL - 1)
#define HIGHEST 0x7fffffffffffffffLL

// States of a slot
#define DEAD 0
#define PLAIN 1
#define BY_ROWS 2

static __device__ u32 rank_of(const i64* edges, int first, int last, i64 code) {
    int low = first, high = last;
    while (low < high) {
        int middle = (low + high) >> 1;
        if (edges[middle] < code) low = middle + 1;
        else high = middle;
    }
    return FIRST_GAP + 2 * (low - first) + (low < last && edges[low] == code);
}

// The cell of a rank: the number of edges that are not above it.
static __device__ int cell_of(const u16* edges, int many, u32 rank) {
    int low = 0, high = many;
    while (low < high) {
        int middle = (low + high) >> 1;
        if (edges[middle] <= rank) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Where the values of an attribute are among the pairs of an event.
static __device__ void run_of(
    const int* attributes, i64 begin, i64 end, int attribute, i64* first, i64* last
) {
    i64 low = begin, high = end;
    while (low < high) {
        i64 middle = (low + high) >> 1;
        if (attributes[middle] < attribute) low = middle + 1;
        else high = middle;
    }
    *first = low;
    while (low < end && attributes[low] == attribute) low++;
    *last = low;
}

// Bounds and state of slots from their rows. A thread has one slot; `bounds[slot]` is the hull of
// what the clause asks of each column.
extern "C" __global__ void bound_clauses(
    const i64* slots, int many, const i64* row_start, const int* row_count,
    const int* row_attribute, const signed char* row_kind, const i64* row_low, const i64* row_high,
    const int* column_of, int width, const i64* edges, const int* edge_starts, u32* bounds, u8* state
) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= many) return;
    i64 slot = slots[at];
    u32* mine = bounds + slot * COLUMNS;
    for (int column = 0; column < COLUMNS; column++) mine[column] = NOT_BOUND | OPEN_HIGH << 16;
    if (row_count[slot] < 0) {
        state[slot] = DEAD;
        return;
    }
    u8 found = PLAIN;
    int before = -1;
    i64 end = row_start[slot] + row_count[slot];
    for (i64 row = row_start[slot]; row < end; row++) {
        int attribute = row_attribute[row], kind = row_kind[row];
        int column = attribute < width ? column_of[attribute] : -1;
        bool again = attribute == before;  // a second interval, or a second term
        before = attribute;
        bool empty = kind == SOME && row_low[row] > row_high[row];
        if (again || empty || kind == NONE || column < 0) found = BY_ROWS;
        if (column < 0) continue;
        u32 low = OPEN_LOW, high = OPEN_HIGH;
        if (kind == MISSING) {
            low = high = NOT_BOUND;
        } else if (kind == SOME) {
            int first = edge_starts[column], last = edge_starts[column + 1];
            if (row_low[row] != LOWEST) low = rank_of(edges, first, last, row_low[row]);
            if (row_high[row] != HIGHEST) high = rank_of(edges, first, last, row_high[row]);
        }
        if (again) {
            low = min(low, mine[column] & 0xffff);
            high = max(high, mine[column] >> 16);
        }
        mine[column] = low | high << 16;
    }
    state[slot] = found;
}

// The lines of 32 slots, from their bounds. A warp has one word of slots and one column; the last
// line of a tile says which clauses have to be verified by rows.
extern "C" __global__ void write_lines(
    const i64* words, int many, const u32* bounds, const u8* state, const u16* cell_edges,
    int lines, u32* out
) {
    int lane = threadIdx.x & 31;
    i64 task = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    if (task >= (i64)many * (COLUMNS + 1)) return;
    i64 word = words[task / (COLUMNS + 1)];
    int column = task % (COLUMNS + 1);
    i64 slot = word * 32 + lane;
    u32* base = out + word / WORDS * (COLUMNS * lines + 1) * WORDS + word % WORDS;
    if (column == COLUMNS) {
        u32 bits = __ballot_sync(EVERY, state[slot] == BY_ROWS);
        if (lane == 0) base[COLUMNS * lines * WORDS] = bits;
        return;
    }
    bool live = state[slot] != DEAD;
    u32 low = bounds[slot * COLUMNS + column] & 0xffff, high = bounds[slot * COLUMNS + column] >> 16;
    const u16* edges = cell_edges + column * (lines - 2);
    int first = cell_of(edges, lines - 2, max(low, OPEN_LOW));
    int last = cell_of(edges, lines - 2, min(high, LAST_RANK));
    bool bound = live && high >= OPEN_LOW;
    base += column * lines * WORDS;
    for (int cell = 0; cell < lines - 1; cell++) {
        u32 bits = __ballot_sync(EVERY, bound && first <= cell && cell <= last);
        if (lane == (cell & 31)) base[cell * WORDS] = bits;
    }
    u32 bits = __ballot_sync(EVERY, live && low == NOT_BOUND);
    if (lane == 0) base[(lines - 1) * WORDS] = bits;
}

// Where the line of each event in each column begins, in steps of 16 bytes, and its rank. A thread
// has one event and one column. `places` is 0 at first.
extern "C" __global__ void place_events(
    const i64* starts, const int* attributes, const i64* codes, int events,
    const int* column_attributes, const i64* edges, const int* edge_starts, const u16* cell_edges,
    int lines, u16* places, u16* ranks, u16* value_places
) {
    i64 at = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (i64)events * COLUMNS) return;
    i64 event = at / COLUMNS;
    int column = at % COLUMNS;
    i64 first = 0, last = 0;
    if (column_attributes[column] >= 0)
        run_of(attributes, starts[event], starts[event + 1], column_attributes[column], &first, &last);
    u32 rank = NOT_BOUND, place = (column * lines + lines - 1) * (WORDS / 4);
    for (i64 value = first; value < last; value++) {
        rank = rank_of(edges, edge_starts[column], edge_starts[column + 1], codes[value]);
        int cell = cell_of(cell_edges + column * (lines - 2), lines - 2, rank);
        value_places[value] = place = (column * lines + cell) * (WORDS / 4);
    }
    if (last - first > 1) {
        place = SEVERAL;
        places[event * STRIDE + COLUMNS] = 1;
    }
    places[event * STRIDE + column] = place;
    ranks[event * COLUMNS + column] = rank;
}

// Whether a clause holds, from its rows: `holds` of `tamis.index.clauses`.
static __device__ __noinline__ bool rows_hold(
    i64 row, i64 end, const int* row_attribute, const short* row_term, const signed char* row_kind,
    const i64* row_low, const i64* row_high, const int* attributes, const i64* codes,
    i64 begin, i64 stop
) {
    while (row < end) {
        int term = row_term[row], kind = row_kind[row];
        i64 first, last;
        run_of(attributes, begin, stop, row_attribute[row], &first, &last);
        bool inside = false;
        for (; row < end && row_term[row] == term; row++)
            for (i64 at = first; at < last && !inside; at++)
                inside = row_low[row] <= codes[at] && codes[at] <= row_high[row];
        bool bound = first < last;
        bool ok = kind == SOME ? inside : kind == NONE ? bound && !inside : !bound;
        if (!ok) return false;
    }
    return true;
}

// The pairs of events and clauses that hold, in any order, and how many each event has.
//
// A block keeps the lines of a tile in shared memory and passes over a run of events; a warp has one
// event at a time. What limits it is shared memory, with COLUMNS lines of 512 bytes for each event
// and tile, or 40 clocks for ten columns, and the number of instructions: so lanes take 16 bytes.
extern "C" __global__ void __launch_bounds__(WARPS * 32, 1) find(
    const uint4* __restrict__ lines_of_tiles, const u32* __restrict__ bounds,
    const i64* row_start, const int* row_count, const int* row_attribute, const short* row_term,
    const signed char* row_kind, const i64* row_low, const i64* row_high,
    const i64* starts, const int* attributes, const i64* codes,
    const u16* __restrict__ places, const u16* __restrict__ ranks, const u16* value_places,
    const int* column_attributes, int lines, int events, int run,
    uint2* pairs, u64 capacity, u64* reserved, u32* counts, int piece
) {
    extern __shared__ uint4 shared[];
    u32* queue = (u32*)shared + (threadIdx.x >> 5) * QUEUE;
    const int lane = threadIdx.x & 31;
    const u32 below = (1u << lane) - 1;
    const i64 tile = blockIdx.y;  // neighbours have the same tile, and find its lines in the cache
    const int all_lines = COLUMNS * lines + 1;
    const uint4* source = lines_of_tiles + tile * all_lines * (WORDS / 4);
#if SHARED_LINES
    uint4* kept = shared + WARPS * QUEUE / 4;
    for (int i = threadIdx.x; i < all_lines * (WORDS / 4); i += blockDim.x) kept[i] = source[i];
    const uint4* mine = kept;
#else
    const uint4* mine = source;
#endif
#if SHARED_BOUNDS
    uint4* kept_bounds = kept + all_lines * (WORDS / 4);
    const uint4* given = (const uint4*)(bounds + tile * TILE * COLUMNS);
    for (int i = threadIdx.x; i < TILE * COLUMNS / 4; i += blockDim.x) kept_bounds[i] = given[i];
    const u32* tile_bounds = (const u32*)kept_bounds;
#else
    const u32* tile_bounds = bounds + tile * TILE * COLUMNS;
#endif
    const u32* by_rows = (const u32*)mine + COLUMNS * lines * WORDS;
    __syncthreads();

    const int begin = blockIdx.x * run;
    const int many = min(run, events - begin);
    u64 at = 0;    // where the next pair of this warp goes
    int left = 0;  // pairs that are reserved from there on
    int waiting = 0;

    // Verify the candidates `queue[from:from + size]`, one in each lane, and write what holds.
    auto verify = [&](int from, int size) {
        __syncwarp();
        bool valid = lane < size;
        u32 candidate = queue[valid ? from + lane : 0];
        u32 event = begin + ((candidate & ~HAS_SEVERAL) >> TILE_BITS);
        u32 position = candidate & (TILE - 1);
        bool ok = valid;
        if (valid) {
            bool unsure = by_rows[position >> 5] >> (position & 31) & 1;
            if (candidate & HAS_SEVERAL) {
                unsure = true;  // several values have no one rank
            } else {
                const uint2* ends = (const uint2*)(tile_bounds + position * COLUMNS);
                const u32* values = (const u32*)(ranks + (i64)event * COLUMNS);
                // Two columns at a time: a value is in an interval if clamping leaves it as it is.
                // A gap between edges may hold the value and an end, so gaps at the ends are left
                // out the second time.
                u32 outside = 0, vague = 0;
#pragma unroll
                for (int i = 0; i < COLUMNS / 2; i++) {
                    uint2 two = ends[i];
                    u32 low = __byte_perm(two.x, two.y, 0x5410);
                    u32 high = __byte_perm(two.x, two.y, 0x7632);
                    outside |= values[i] ^ __vminu2(__vmaxu2(values[i], low), high);
                    low |= ODD, high = (high - ODD) | ODD;
                    vague |= values[i] ^ __vminu2(__vmaxu2(values[i], low), high);
                }
                ok = !outside;
                unsure |= vague != 0;
            }
            if (ok && unsure) {
                i64 row = row_start[tile * TILE + position];
                ok = rows_hold(row, row + row_count[tile * TILE + position], row_attribute, row_term,
                               row_kind, row_low, row_high, attributes, codes,
                               starts[event], starts[event + 1]);
            }
        }
        u32 held = __ballot_sync(EVERY, ok);
        int holding = __popc(held);
        if (!holding) return;
        u64 fresh = 0;
        if (holding > left) {
            if (lane == 0) fresh = atomicAdd(reserved, (u64)piece);
            fresh = __shfl_sync(EVERY, fresh, 0);
        }
        int nth = __popc(held & below);
        u64 to = nth < left ? at + nth : fresh + (nth - left);
        if (ok && to < capacity) pairs[to] = make_uint2((u32)(tile * TILE + position), event);
        if (holding > left) {
            at = fresh + (holding - left);
            left += piece - holding;
        } else {
            at += holding;
            left -= holding;
        }
        // Candidates of an event stand together: one lane adds the number of all.
        u32 neighbour = __shfl_up_sync(EVERY, event, 1);
        bool head = valid && (lane == 0 || neighbour != event);
        u32 heads = __ballot_sync(EVERY, head);
        if (head) {
            u32 later = heads & ~below & ~(1u << lane);
            u32 segment = later ? (1u << (__ffs(later) - 1)) - 1 : EVERY;
            int more = __popc(held & segment & ~below);
            if (more) atomicAdd(counts + event, (u32)more);
        }
        __syncwarp();
    };

    // Tiles begin at different events, so that they do not add to the same counts all the time.
    const int shift = many > 0 ? (int)(tile * 97 % many) : 0;
    for (int number = threadIdx.x >> 5; number < many; number += WARPS) {
        const int current = number + shift >= many ? number + shift - many : number + shift;
        const uint4* row = (const uint4*)(places + (i64)(begin + current) * STRIDE);
        u32 place[STRIDE / 2];
#pragma unroll
        for (int i = 0; i < STRIDE / 8; i++) {
            uint4 eight = row[i];
            place[4 * i] = eight.x, place[4 * i + 1] = eight.y;
            place[4 * i + 2] = eight.z, place[4 * i + 3] = eight.w;
        }
        uint4 bits = make_uint4(EVERY, EVERY, EVERY, EVERY);
        const u32 several = place[COLUMNS / 2] & 0xffff ? HAS_SEVERAL : 0;
        if (several) {
            const u16* own = (const u16*)row;
#pragma unroll 1  // rare, and must not crowd the usual case out of the cache of instructions
            for (int column = 0; column < COLUMNS; column++) {
                uint4 word = make_uint4(0, 0, 0, 0);
                if (own[column] != SEVERAL) {
                    word = mine[own[column] + lane];
                } else {
                    i64 first, last;
                    run_of(attributes, starts[begin + current], starts[begin + current + 1],
                           column_attributes[column], &first, &last);
#pragma unroll 1
                    for (; first < last; first++) {
                        uint4 one = mine[value_places[first] + lane];
                        word.x |= one.x, word.y |= one.y, word.z |= one.z, word.w |= one.w;
                    }
                }
                bits.x &= word.x, bits.y &= word.y, bits.z &= word.z, bits.w &= word.w;
            }
        } else {
#pragma unroll
            for (int column = 0; column < COLUMNS; column++) {
                u32 line = place[column / 2] >> 16 * (column & 1) & 0xffff;
                uint4 word = mine[line + lane];
                bits.x &= word.x, bits.y &= word.y, bits.z &= word.z, bits.w &= word.w;
            }
        }
        for (;;) {
            const bool has = bits.x | bits.y | bits.z | bits.w;
            const u32 lanes = __ballot_sync(EVERY, has);
            if (!lanes) break;
            int sum = __popc(bits.x) + __popc(bits.y) + __popc(bits.z) + __popc(bits.w);
            const int own = sum;
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                int before = __shfl_up_sync(EVERY, sum, step);
                if (lane >= step) sum += before;
            }
            const int total = __shfl_sync(EVERY, sum, 31);
            const u32 first = (u32)current << TILE_BITS | lane * 128 | several;
            if (waiting + total <= QUEUE) {
                u32* to = queue + waiting + sum - own;
                for (u32 word = bits.x; word; word &= word - 1) *to++ = first + __ffs(word) - 1;
                for (u32 word = bits.y; word; word &= word - 1) *to++ = first + __ffs(word) + 31;
                for (u32 word = bits.z; word; word &= word - 1) *to++ = first + __ffs(word) + 63;
                for (u32 word = bits.w; word; word &= word - 1) *to++ = first + __ffs(word) + 95;
                bits = make_uint4(0, 0, 0, 0);
                waiting += total;
            } else {  // too many at once: one of each lane
                if (has) {
                    u32 bit = first;
                    if (bits.x) bit += __ffs(bits.x) - 1, bits.x &= bits.x - 1;
                    else if (bits.y) bit += __ffs(bits.y) + 31, bits.y &= bits.y - 1;
                    else if (bits.z) bit += __ffs(bits.z) + 63, bits.z &= bits.z - 1;
                    else bit += __ffs(bits.w) + 95, bits.w &= bits.w - 1;
                    queue[waiting + __popc(lanes & below)] = bit;
                }
                waiting += __popc(lanes);
            }
            while (waiting >= 32) {
                waiting -= 32;
                verify(waiting, 32);
            }
        }
    }
    if (waiting) verify(0, waiting);
    for (int i = lane; i < left; i += 32)
        if (at + i < capacity) pairs[at + i] = make_uint2(0, NO_EVENT);
}

// Where the slots of each event begin, and at the end how many pairs were reserved. One warp.
extern "C" __global__ void add_up(const u32* counts, int events, const u64* reserved, i64* starts) {
    const int lane = threadIdx.x & 31;
    i64 total = 0;
    for (int first = 0; first < events; first += 32) {
        i64 sum = first + lane < events ? counts[first + lane] : 0;
        for (int step = 1; step < 32; step *= 2) {
            i64 before = __shfl_up_sync(EVERY, sum, step);
            if (lane >= step) sum += before;
        }
        if (first + lane < events) starts[first + lane + 1] = total + sum;
        total += __shfl_sync(EVERY, sum, 31);
    }
    if (lane == 0) {
        starts[0] = 0;
        starts[events + 1] = *reserved;
    }
}

// Pairs in any order, to the slots of each event. A warp takes 32 pairs at a time.
extern "C" __global__ void gather(
    const uint2* pairs, u64 many, const i64* starts, u32* filled, int* out
) {
    const int lane = threadIdx.x & 31;
    const u32 below = (1u << lane) - 1;
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at - lane < many; at += step) {
        uint2 pair = at < many ? pairs[at] : make_uint2(0, NO_EVENT);
        u32 neighbour = __shfl_up_sync(EVERY, pair.y, 1);
        bool head = lane == 0 || neighbour != pair.y;
        u32 heads = __ballot_sync(EVERY, head);
        int leader = 31 - __clz(heads & (below | 1u << lane));
        u32 later = heads & ~below & ~(1u << lane);
        int after = later ? __ffs(later) - 1 : 32;
        u32 base = 0;
        if (head && pair.y != NO_EVENT) base = atomicAdd(filled + pair.y, (u32)(after - lane));
        base = __shfl_sync(EVERY, base, leader);
        if (pair.y != NO_EVENT) out[starts[pair.y] + base + (lane - leader)] = (int)pair.x;
    }
}
