import { createAllocator, instantiator } from '../../../reuse.js';
import { addWeighed, emptySums, type WeightedSums } from '../prediction.js';
import { binary } from './weigh.generated.js';

/** The loop; addresses are of its memory. Its source documents it. */
interface WeighKernels {
  readonly memory: WebAssembly.Memory;
  weighValues(
    weights: number,
    values: number,
    keys: number,
    dim: number,
    out: number,
    magnitude: number,
  ): number;
}

const instantiate = instantiator<WeighKernels>(binary, 'weighted values');

/** Keys that are added at once, at most. */
export const keysAtOnce = 64;

/** Sums of weighted values, some keys at a time. */
export interface ValueSums {
  /** A place for the values of 64 keys, [keys × vDim]. */
  readonly room: Float64Array;
  /** Begins sums anew. */
  readonly clear: () => void;
  /** Adds the first keys of the room, as many as there are weights. */
  readonly add: (weights: Float64Array) => void;
  /** A copy of the sums. */
  readonly sums: () => WeightedSums;
}

/** Makes sums over values of any number of columns, in TypeScript. */
function plainSums(vDim: number): ValueSums {
  const room = new Float64Array(keysAtOnce * vDim);
  let sums = emptySums(vDim);
  return {
    room,
    clear: () => (sums = emptySums(vDim)),
    add: (weights) => addWeighed(sums, weights, room, vDim),
    sums: () => sums,
  };
}

/** Makes sums over values: by the loops where the number of columns is a multiple of 8. */
export function createValueSums(vDim: number): ValueSums {
  if (vDim % 8 !== 0) return plainSums(vDim);
  const kernels = instantiate();
  const lengths = { weights: keysAtOnce, room: keysAtOnce * vDim, out: vDim, magnitude: vDim };
  const numbers = Object.values(lengths).reduce((sum, length) => sum + length + 1, 0);
  const { allocate } = createAllocator(kernels.memory, 8 * numbers);
  const block = (length: number) =>
    new Float64Array(kernels.memory.buffer, allocate(8 * length), length);
  const [weights, room] = [block(lengths.weights), block(lengths.room)];
  const [out, magnitude] = [block(vDim), block(vDim)];
  let squares = 0;
  return {
    room,
    clear: () => {
      out.fill(0);
      magnitude.fill(0);
      squares = 0;
    },
    add: (ofKeys) => {
      weights.set(ofKeys);
      const [w, v, o, m] = [weights, room, out, magnitude].map(({ byteOffset }) => byteOffset);
      squares += kernels.weighValues(w, v, ofKeys.length, vDim, o, m);
    },
    sums: () => ({ out: out.slice(), magnitude: magnitude.slice(), squares }),
  };
}
