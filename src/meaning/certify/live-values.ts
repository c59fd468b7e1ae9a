import type { Trace } from '../trace/index.js';

/**
 * Which values of a trace others are made of: 1 for each of some values and for all of which one of them is made, in whatever way.
 *
 * @param last the numbers of values
 */
export function liveValues(trace: Trace, last: Iterable<number>): Uint8Array {
  const live = new Uint8Array(trace.count);
  for (const value of last) live[value] = 1;
  const take = (values: Uint32Array | null | undefined): void => {
    if (values) for (const value of values) live[value] = 1;
  };
  for (let value = trace.count - 1; value >= 0; value--) {
    if (live[value] === 0) continue;
    const { origin } = trace.operationOf(value);
    if (origin === 'product') {
      const { m, n, k, a, b, c, scales } = trace.products[trace.a[value]];
      const d = trace.b[value];
      const [row, column] = [Math.floor(d / n), d % n];
      take(a.subarray(row * k, (row + 1) * k));
      take(b.subarray(column * k, (column + 1) * k));
      take(c?.subarray(d, d + 1));
      take(scales?.a.subarray((row * scales.a.length) / m, ((row + 1) * scales.a.length) / m));
      take(
        scales?.b.subarray((column * scales.b.length) / n, ((column + 1) * scales.b.length) / n),
      );
    } else if (origin === 'function' || origin === 'choice' || origin === 'same') {
      live[trace.a[value]] = 1;
      live[trace.b[value]] = 1;
      live[trace.c[value]] = 1;
    } else if (origin === 'scale') live[trace.a[value]] = 1;
  }
  return live;
}
