// AssemblyScript: a table of groups by open addressing.

/** The slot of a group in a table of pairs of group + 1 and place, or an empty one. */
// @inline
export function slotOf(slots: usize, mask: u32, group: i32): usize {
  let slot = (<u32>group * 0x9e3779b1) & mask;
  let key = load<i32>(slots + ((<usize>slot) << 3));
  while (key !== 0 && key !== group + 1) {
    slot = (slot + 1) & mask;
    key = load<i32>(slots + ((<usize>slot) << 3));
  }
  return slots + ((<usize>slot) << 3);
}
