/**
 * The immediate post-dominator of each block: where all paths from it to the end meet first. Cooper, Harvey and
 * Kennedy, "A Simple, Fast Dominance Algorithm" (2001), on the reversed graph.
 *
 * @param successors successors of each block, by number; `successors.length` is the end
 * @returns by block; null for blocks from which no path leads to the end
 */
export function immediatePostDominators(
  successors: readonly (readonly number[])[],
): (number | null)[] {
  const end = successors.length;
  const predecessors: number[][] = Array.from({ length: end + 1 }, () => []);
  successors.forEach((targets, block) => {
    for (const target of targets) predecessors[target].push(block);
  });
  const order = postOrder(end, predecessors);
  const rank = new Int32Array(end + 1).fill(-1);
  order.forEach((block, i) => (rank[block] = i));
  const result = new Array<number>(end + 1).fill(-1);
  result[end] = end;

  function meet(one: number, other: number): number {
    let [a, b] = [one, other];
    while (a !== b)
      if (rank[a] < rank[b]) a = result[a];
      else b = result[b];
    return a;
  }

  for (let changed = true; changed;) {
    changed = false;
    // Reverse post order: the end comes first.
    for (let i = order.length - 2; i >= 0; i--) {
      const block = order[i];
      let dominator = -1;
      for (const successor of successors[block])
        if (result[successor] !== -1)
          dominator = dominator === -1 ? successor : meet(successor, dominator);
      if (dominator !== result[block]) {
        result[block] = dominator;
        changed = true;
      }
    }
  }
  return result.slice(0, end).map((block) => (block === -1 ? null : block));
}

/** Blocks from which the end can be reached, each after the blocks that the walk finds from it. */
function postOrder(start: number, neighbours: readonly (readonly number[])[]): number[] {
  const order: number[] = [];
  const seen = new Uint8Array(neighbours.length);
  const stack: { readonly block: number; next: number }[] = [{ block: start, next: 0 }];
  seen[start] = 1;
  while (stack.length > 0) {
    const top = stack[stack.length - 1];
    if (top.next === neighbours[top.block].length) {
      order.push(top.block);
      stack.pop();
      continue;
    }
    const neighbour = neighbours[top.block][top.next++];
    if (seen[neighbour] === 1) continue;
    seen[neighbour] = 1;
    stack.push({ block: neighbour, next: 0 });
  }
  return order;
}
