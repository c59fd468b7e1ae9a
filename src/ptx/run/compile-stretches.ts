import type { Compiler } from '../compile/index.js';
import type { LaneOperation, LaneStretch, RunOperations } from '../program/index.js';
import type { LaneTracer, TracedMemory } from './lane-tracer.js';

/**
 * Compiles stretches to functions that run their operations in order. Where values are followed, each operation that may touch
 * them is compiled alone, and the tracer runs it.
 */
export function compileStretches(
  stretches: readonly LaneStretch[],
  compiler: Compiler,
  tracing: {
    readonly tracer: LaneTracer;
    readonly memory: TracedMemory;
    readonly isTraced: (operation: LaneOperation) => boolean;
  } | null,
): readonly RunOperations[] {
  if (tracing === null) return compiler.compileAll(stretches.map(({ operations }) => operations));
  const { tracer, memory, isTraced } = tracing;
  const pieces = stretches.map(({ operations }) => {
    const ofStretch: LaneOperation[][] = [];
    let isOpen = false;
    for (const operation of operations) {
      const isPlain = !isTraced(operation);
      if (isPlain && isOpen) ofStretch[ofStretch.length - 1].push(operation);
      else ofStretch.push([operation]);
      isOpen = isPlain;
    }
    return ofStretch;
  });
  const flat = pieces.flat();
  // The tracer takes the guard of an operation from the lanes, and so runs it without.
  const compiled = compiler.compileAll(
    flat.map((operations) =>
      isTraced(operations[0]) ? [{ ...operations[0], guard: null }] : operations,
    ),
  );
  const runs = flat.map(([first], i) => {
    const run = compiled[i];
    if (!isTraced(first)) return run;
    const follow = tracer.operation(first, run, memory);
    return guarded(first, follow, memory.words);
  });
  let next = 0;
  return pieces.map((ofStretch) => {
    const parts = runs.slice(next, (next += ofStretch.length));
    return (registers, lanes) => {
      for (const part of parts) part(registers, lanes);
    };
  });
}

/** Runs an operation for those lanes of the mask for which its guard holds. */
function guarded({ guard }: LaneOperation, run: RunOperations, words: Uint32Array): RunOperations {
  if (guard === null) return run;
  const { slot, isNegated } = guard;
  return (registers, lanes) => {
    const first = (registers + slot.offset) >>> 2;
    let mask = 0;
    for (let lane = 0; lane < 32; lane++) mask |= (words[first + lane] & 1) << lane;
    const active = lanes & (isNegated ? ~mask : mask);
    if (active !== 0) run(registers, active);
  };
}
