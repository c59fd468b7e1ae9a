// AssemblyScript: what vectors of two fp64 or i64 lanes need.

// @ts-ignore: decorator
@inline
export function allLanes(): v128 {
  return i64x2.splat(-1);
}

/** The first lane only. */
// @ts-ignore: decorator
@inline
export function firstLane(): v128 {
  return i64x2(-1, 0);
}

// @ts-ignore: decorator
@inline
export function larger(x: v128): f64 {
  return max<f64>(f64x2.extract_lane(x, 0), f64x2.extract_lane(x, 1));
}

// @ts-ignore: decorator
@inline
export function add(address: usize, value: f64): void {
  store<f64>(address, load<f64>(address) + value);
}

// @ts-ignore: decorator
@inline
export function addLanes(address: usize, lanes: v128, repeat: f64): void {
  add(address, (f64x2.extract_lane(lanes, 0) + f64x2.extract_lane(lanes, 1)) * repeat);
}

// @ts-ignore: decorator
@inline
export function addCount(address: usize, lanes: v128, repeat: f64): void {
  add(address, <f64>(i64x2.extract_lane(lanes, 0) + i64x2.extract_lane(lanes, 1)) * repeat);
}
