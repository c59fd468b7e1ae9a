// Attention in fp32, tiled over the keys with an online softmax, for any sequence lengths, head
// dimensions, grouped heads, causal masks and sliding windows.
//
// A workgroup computes 16 queries and 64 columns of the output. WGSL lets an implementation assume
// that no infinity and no NaN ever occurs, so arithmetic here sees finite numbers only: inputs are
// read as bit patterns, special values are replaced by zero and carried beside the sums as integers,
// and special outputs are written as bit patterns. Masked and empty rows need no −∞ either.

const QUERIES = 16u;
const KEYS = 32u;
const COLUMNS = 64u; // Also the number of invocations: each owns one column of the output.
const DEPTH = 32u; // How much of the qk dimension is in workgroup memory at a time.
const LANES = COLUMNS / QUERIES; // Invocations that share a query's scores.
const SCORES = KEYS / LANES; // Scores of one invocation.
const PITCH = DEPTH + 1u; // Keys start in different memory banks.

struct Params {
  heads: u32,
  group_size: u32,
  queries: u32,
  keys: u32,
  qk_dim: u32,
  v_dim: u32,
  left: i32, // A query sees its diagonal, `left` keys before and `right` keys after it.
  right: i32,
  scale_log2e: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> q: array<u32>;
@group(0) @binding(2) var<storage, read> k: array<u32>;
@group(0) @binding(3) var<storage, read> v: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<u32>;
@group(0) @binding(5) var<storage, read_write> lse: array<u32>;

// What a score is. PLUS_INFINITY and NOT_A_NUMBER are also the bits of a row's and a column's state.
const MASKED = 0u;
const PLUS_INFINITY = 1u;
const MINUS_INFINITY = 2u;
const NOT_A_NUMBER = 4u;
const FINITE = 8u;

const LOWEST = -0x1.fffffep+127f;
const LN2 = 0x1.62e43p-1f;

var<workgroup> q_tile: array<f32, QUERIES * PITCH>;
var<workgroup> k_tile: array<f32, KEYS * PITCH>;
var<workgroup> q_special: array<atomic<u32>, QUERIES>;
var<workgroup> k_special: array<atomic<u32>, KEYS>;
var<workgroup> weights: array<f32, QUERIES * KEYS>; // Scores first, then weights.
var<workgroup> kinds: array<u32, QUERIES * KEYS>;
var<workgroup> exponent: array<f32, QUERIES>; // The largest score of each row so far, rounded to a whole number.
var<workgroup> rescale: array<f32, QUERIES>;
var<workgroup> row_sum: array<f32, QUERIES>;
var<workgroup> row_state: array<u32, QUERIES>;

fn magnitude(bits: u32) -> u32 {
  return bits & 0x7fffffffu;
}

fn is_special(bits: u32) -> bool {
  return magnitude(bits) >= 0x7f800000u;
}

fn kind_of(bits: u32) -> u32 {
  if (magnitude(bits) < 0x7f800000u) { return FINITE; }
  if (magnitude(bits) > 0x7f800000u) { return NOT_A_NUMBER; }
  return select(PLUS_INFINITY, MINUS_INFINITY, (bits >> 31u) == 1u);
}

// The sum of infinities and NaNs that occurred, each a bit of `seen`.
fn sum_of_kinds(seen: u32) -> u32 {
  return select(seen, NOT_A_NUMBER, seen == (PLUS_INFINITY | MINUS_INFINITY) || (seen & NOT_A_NUMBER) != 0u);
}

fn bits_of_kind(kind: u32) -> u32 {
  switch kind {
    case PLUS_INFINITY: { return 0x7f800000u; }
    case MINUS_INFINITY: { return 0xff800000u; }
    default: { return 0x7fc00000u; }
  }
}

// The kind of a score whose query or key holds a special value: IEEE 754 carried through q·k·scale.
fn special_score(q_start: u32, k_start: u32) -> u32 {
  var seen = 0u;
  for (var d = 0u; d < params.qk_dim; d++) {
    let a = q[q_start + d];
    let b = k[k_start + d];
    if (!is_special(a) && !is_special(b)) { continue; }
    let undefined_product = kind_of(a) == NOT_A_NUMBER || kind_of(b) == NOT_A_NUMBER
      || magnitude(a) == 0u || magnitude(b) == 0u;
    if (undefined_product) { return NOT_A_NUMBER; }
    seen |= kind_of(0x7f800000u | ((a ^ b) & 0x80000000u));
  }
  let kind = sum_of_kinds(seen);
  if (kind == 0u) { return FINITE; }
  if (kind == NOT_A_NUMBER || params.scale_log2e == 0.0) { return NOT_A_NUMBER; }
  return select(kind, kind ^ (PLUS_INFINITY | MINUS_INFINITY), params.scale_log2e < 0.0);
}

// The exponent of 2^(a − b) for whole numbers a ≤ b, cut off where 2^(a − b) is zero. The halves
// differ by a finite number whatever a and b are.
fn exponent_difference(a: f32, b: f32) -> i32 {
  return i32(2.0 * max(0.5 * a - 0.5 * b, -100.0));
}

// 2^e for −200 ≤ e ≤ 0, exactly; zero below the normal numbers, where WGSL may flush.
fn power_of_two(e: i32) -> f32 {
  return select(0.0, bitcast<f32>(u32(clamp(e, -126, 0) + 127) << 23u), e >= -126);
}

@compute @workgroup_size(COLUMNS)
fn attention(
  @builtin(workgroup_id) group: vec3u,
  @builtin(local_invocation_index) invocation: u32,
) {
  let head = group.z;
  let batch = head / params.heads;
  let kv_heads = params.heads / params.group_size;
  let kv_head = batch * kv_heads + (head % params.heads) / params.group_size;
  let first_query = group.x * QUERIES;
  let queries = min(QUERIES, params.queries - first_query);
  let column = group.y * COLUMNS + invocation;
  let has_column = column < params.v_dim;

  // The part of each query's scores that this invocation computes.
  let row = invocation / LANES;
  let lane = invocation % LANES;

  // Bottom-right alignment: the last query's diagonal is the last key. Masks only move right from
  // row to row, so the first row sees the tile's first key and the last row its last.
  let first_diagonal = i32(first_query) + i32(params.keys) - i32(params.queries);
  let diagonal = first_diagonal + i32(row);
  let begin = u32(max(first_diagonal - params.left, 0));
  let end = u32(clamp(first_diagonal + i32(queries) + params.right, 0, i32(params.keys)));

  var sums: array<f32, QUERIES>;
  var column_state: array<u32, QUERIES>;
  if (invocation < QUERIES) {
    exponent[invocation] = LOWEST;
    row_sum[invocation] = 0.0;
    row_state[invocation] = 0u;
    atomicStore(&q_special[invocation], 0u);
  }

  for (var first_key = begin; first_key < end; first_key += KEYS) {
    // Scores, a slice of the qk dimension at a time. Without an initializer WGSL has `dots` start at
    // zero for every tile too, but the SPIR-V of webgpu 0.6.2 (Tint) clears it once per invocation.
    var dots = array<f32, SCORES>();
    if (invocation < KEYS) { atomicStore(&k_special[invocation], 0u); }
    for (var slice = 0u; slice < params.qk_dim; slice += DEPTH) {
      workgroupBarrier();
      for (var i = invocation; i < QUERIES * DEPTH; i += COLUMNS) {
        let query = i / DEPTH;
        let d = slice + i % DEPTH;
        var value = 0.0;
        if (query < queries && d < params.qk_dim) {
          let bits = q[(head * params.queries + first_query + query) * params.qk_dim + d];
          if (is_special(bits)) { atomicStore(&q_special[query], 1u); } else { value = bitcast<f32>(bits); }
        }
        q_tile[query * PITCH + i % DEPTH] = value;
      }
      for (var i = invocation; i < KEYS * DEPTH; i += COLUMNS) {
        let key = i / DEPTH;
        let d = slice + i % DEPTH;
        var value = 0.0;
        if (first_key + key < end && d < params.qk_dim) {
          let bits = k[(kv_head * params.keys + first_key + key) * params.qk_dim + d];
          if (is_special(bits)) { atomicStore(&k_special[key], 1u); } else { value = bitcast<f32>(bits); }
        }
        k_tile[key * PITCH + i % DEPTH] = value;
      }
      workgroupBarrier();
      for (var d = 0u; d < DEPTH; d++) {
        let x = q_tile[row * PITCH + d];
        for (var s = 0u; s < SCORES; s++) { dots[s] += x * k_tile[(s * LANES + lane) * PITCH + d]; }
      }
    }
    for (var s = 0u; s < SCORES; s++) {
      let local_key = s * LANES + lane;
      let key = i32(first_key + local_key);
      let at = row * KEYS + local_key;
      let visible = row < queries && key < i32(end)
        && key >= diagonal - params.left && key <= diagonal + params.right;
      let score = dots[s] * params.scale_log2e;
      var kind = MASKED;
      if (visible) {
        // A finite dot product may still leave the range of fp32.
        kind = kind_of(bitcast<u32>(score));
        if ((atomicLoad(&q_special[row]) | atomicLoad(&k_special[local_key])) != 0u) {
          kind = special_score(
            (head * params.queries + first_query + row) * params.qk_dim,
            (kv_head * params.keys + u32(key)) * params.qk_dim,
          );
        }
      }
      kinds[at] = kind;
      weights[at] = select(0.0, score, kind == FINITE);
    }
    workgroupBarrier();

    // The largest score of each row. Rounded to whole numbers, so that rescaling is exact: a power
    // of two.
    if (invocation < QUERIES) {
      let before = exponent[invocation];
      var largest = before;
      for (var j = 0u; j < KEYS; j++) {
        let kind = kinds[invocation * KEYS + j];
        if (kind == FINITE) { largest = max(largest, round(weights[invocation * KEYS + j])); }
        row_state[invocation] |= kind;
      }
      exponent[invocation] = largest;
      rescale[invocation] = power_of_two(exponent_difference(before, largest));
    }
    workgroupBarrier();

    // Weights. WGSL allows exp2(x) an error of 3 + 2|x| ulp; its argument here is within ±1/2, which
    // makes that 4 ulp for every weight, however small.
    for (var s = 0u; s < SCORES; s++) {
      let at = row * KEYS + s * LANES + lane;
      let score = weights[at];
      let whole = round(score);
      let weight = exp2(score - whole) * power_of_two(exponent_difference(whole, exponent[row]));
      weights[at] = select(0.0, weight, kinds[at] == FINITE);
    }
    workgroupBarrier();

    if (invocation < QUERIES) {
      var tile_sum = 0.0;
      for (var j = 0u; j < KEYS; j++) { tile_sum += weights[invocation * KEYS + j]; }
      row_sum[invocation] = row_sum[invocation] * rescale[invocation] + tile_sum;
    }
    for (var r = 0u; r < QUERIES; r++) { sums[r] *= rescale[r]; }
    let tile_keys = min(KEYS, end - first_key);
    for (var j = 0u; j < tile_keys && has_column; j++) {
      let bits = v[(kv_head * params.keys + first_key + j) * params.v_dim + column];
      if (is_special(bits)) {
        for (var r = 0u; r < QUERIES; r++) {
          let kind = kinds[r * KEYS + j];
          if (kind == FINITE) { column_state[r] |= kind_of(bits); }
          if (kind == MINUS_INFINITY) { column_state[r] |= NOT_A_NUMBER; } // 0·∞
        }
      } else {
        let value = bitcast<f32>(bits);
        for (var r = 0u; r < QUERIES; r++) { sums[r] += weights[r * KEYS + j] * value; }
      }
    }
    workgroupBarrier();
  }
  workgroupBarrier();

  for (var r = 0u; r < queries && has_column; r++) {
    let at = (head * params.queries + first_query + r) * params.v_dim + column;
    let state = row_state[r];
    if ((state & (PLUS_INFINITY | NOT_A_NUMBER)) != 0u) {
      out[at] = bits_of_kind(NOT_A_NUMBER);
    } else if (column_state[r] != 0u) {
      out[at] = bits_of_kind(sum_of_kinds(column_state[r]));
    } else {
      out[at] = select(0u, bitcast<u32>(sums[r] / max(row_sum[r], 0.5)), (state & FINITE) != 0u);
    }
  }
  if (group.y == 0u && invocation < queries) {
    let state = row_state[invocation];
    let at = head * params.queries + first_query + invocation;
    if ((state & NOT_A_NUMBER) != 0u) {
      lse[at] = bits_of_kind(NOT_A_NUMBER);
    } else if ((state & PLUS_INFINITY) != 0u) {
      lse[at] = bits_of_kind(PLUS_INFINITY);
    } else if ((state & FINITE) != 0u) {
      lse[at] = bitcast<u32>((exponent[invocation] + log2(row_sum[invocation])) * LN2);
    } else {
      lse[at] = bits_of_kind(MINUS_INFINITY);
    }
  }
}
