import { lazily } from '../../reuse/index.js';
import { isActive, type Operand, type Run, type RunLoop, warpLanes } from './run.js';

/** `results[i]` from `inputs[i]`, for arrays of equal length. */
type WordArrayFunction = (inputs: Uint32Array, results: Uint32Array) => void;

/** Words that are processed at a time: a run of 128 registers in 32 lanes. */
const capacity = 128 * warpLanes;

function activeCount(activeLanes: number): number {
  let count = 0;
  for (let lane = 0; lane < warpLanes; lane++) if (isActive(activeLanes, lane)) count++;
  return count;
}

/** Executions of a run, a part small enough for the buffers. */
interface Part {
  readonly run: Run;
  readonly first: number;
  readonly count: number;
}

function gather(source: Operand, { run, first, count }: Part, into: Uint32Array): void {
  const { words, step, laneStride, first: base } = source;
  let at = 0;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(run.activeLanes, lane)) continue;
    let i = base + lane * laneStride + first * step;
    for (let n = 0; n < count; n++, i += step) into[at++] = words[i];
  }
}

function scatter(from: Uint32Array, { run, first, count }: Part): void {
  const { words, step, laneStride, first: base } = run.destination;
  let at = 0;
  for (let lane = 0; lane < warpLanes; lane++) {
    if (!isActive(run.activeLanes, lane)) continue;
    let i = base + lane * laneStride + first * step;
    for (let n = 0; n < count; n++, i += step) words[i] = from[at++];
  }
}

/** Puts each result into the word, below the bits that it already has. */
function join(words: Uint32Array, results: Uint32Array, size: number, resultBits: number): void {
  for (let i = 0; i < size; i++) words[i] = (words[i] << resultBits) | results[i];
}

/** Whether no execution reads from the source what an earlier one wrote: then all may be read first. */
function mayReadFirst(destination: Operand, source: Operand, count: number): boolean {
  if (count === 1 || source.words.buffer !== destination.words.buffer) return true;
  if (source.words !== destination.words) return false;
  const isBelow = (a: Operand, b: Operand): boolean => a.first + (count - 1) * a.step < b.first;
  if (isBelow(source, destination) || isBelow(destination, source)) return true;
  // The source is always ahead of the destination.
  return (
    destination.step > 0 && source.step >= destination.step && source.first >= destination.first
  );
}

/**
 * A loop that applies one function to every source, a whole array at a time, and puts the results for
 * the sources into one word, the first source's in its highest bits.
 *
 * @param create makes the function when it is first used; it may have memory of its own
 * @param resultBits bits of the result for one source
 * @param inOrder carries out the runs in which an execution reads the result of an earlier one
 */
export function arrayLoop(
  create: () => WordArrayFunction,
  resultBits: number,
  inOrder: RunLoop,
): RunLoop {
  // Every word of the buffers that is read was written in the same call.
  const memory = lazily(() => {
    const [inputs, results, joined] = [0, 1, 2].map(() => new Uint32Array(capacity));
    return { inputs, results, joined, evaluateArray: create() };
  });
  return (run) => {
    const { destination, sources, count, activeLanes } = run;
    const lanes = activeCount(activeLanes);
    if (lanes === 0) return;
    if (!sources.every((source) => mayReadFirst(destination, source, count))) return inOrder(run);
    const { inputs, results, joined, evaluateArray } = memory();
    const most = Math.floor(capacity / lanes);
    for (let first = 0; first < count; first += most) {
      const part: Part = { run, first, count: Math.min(most, count - first) };
      const size = lanes * part.count;
      gather(sources[0], part, inputs);
      evaluateArray(inputs.subarray(0, size), joined.subarray(0, size));
      for (const source of sources.slice(1)) {
        gather(source, part, inputs);
        evaluateArray(inputs.subarray(0, size), results.subarray(0, size));
        join(joined, results, size, resultBits);
      }
      scatter(joined, part);
    }
  };
}
