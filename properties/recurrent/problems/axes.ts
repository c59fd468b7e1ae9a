import {
  recurrentFamilies,
  type RecurrentFamily,
  type RecurrentLaw,
} from '../../../src/problem/index.js';

/** What an axis of a tensor of a recurrence counts; tokens are counted over all batch entries or packed sequences. */
export type Axis = 'token' | 'sequence' | 'keyHead' | 'valueHead' | 'keyDim' | 'valueDim';

/** How much there is along each axis. */
export type AxisSizes = Readonly<Record<Axis, number>>;

/** Inputs by the names of their tensors, the gradients that a backward pass begins with last. */
export const inputNames = [
  'q',
  'k',
  'v',
  'g',
  'beta',
  'dt',
  'A',
  'D',
  'z',
  'dt_bias',
  'initial_state',
  'dout',
  'dfinal_state',
] as const;
/** The name of an input. */
export type InputName = (typeof inputNames)[number];

/** A name of a tensor that a problem or its results have. */
export type TensorName =
  | InputName
  | ('out' | 'final_state' | 'dq' | 'dk' | 'dv' | 'dg' | 'dbeta' | 'dinitial_state')
  | ('ddt' | 'dA' | 'dD' | 'ddt_bias');

const ofKeys = ['token', 'keyHead', 'keyDim'] as const;
const ofValues = ['token', 'valueHead', 'valueDim'] as const;
const ofHeads = ['token', 'valueHead'] as const;
const ofStates = ['sequence', 'valueHead', 'keyDim', 'valueDim'] as const;

/** The axes of a tensor, slowest first; a gate has one of key dimensions where its family has a decay for each. */
export function axesOf(name: TensorName, family: RecurrentFamily): readonly Axis[] {
  const { decay }: RecurrentLaw = recurrentFamilies[family];
  switch (name) {
    case 'q':
    case 'k':
    case 'dq':
    case 'dk':
      return ofKeys;
    case 'v':
    case 'out':
    case 'dv':
    case 'dout':
    case 'z':
      return ofValues;
    case 'g':
    case 'dg':
      return decay === 'by-key-dimension' ? [...ofHeads, 'keyDim'] : ofHeads;
    case 'beta':
    case 'dbeta':
    case 'dt':
    case 'ddt':
      return ofHeads;
    case 'A':
    case 'D':
    case 'dt_bias':
    case 'dA':
    case 'dD':
    case 'ddt_bias':
      return ['valueHead'];
    default:
      return ofStates;
  }
}

/** Places to keep along some axes, in their new order; all of the others. */
export type Picks = Readonly<Partial<Record<Axis, readonly number[]>>>;

/** The elements at the picked places, in a new array. */
export function pickElements(
  values: Float64Array,
  axes: readonly Axis[],
  sizes: AxisSizes,
  picks: Picks,
): Float64Array {
  let kept: Float64Array = values;
  // From the fastest axis on, so that those before it have their old sizes.
  let inner = 1;
  for (const axis of [...axes].reverse()) {
    const size = sizes[axis];
    const pick = picks[axis];
    if (pick !== undefined) {
      const outer = kept.length / (size * inner) || 0;
      const next = new Float64Array(outer * pick.length * inner);
      for (let o = 0; o < outer; o++)
        pick.forEach((from, to) => {
          const at = (o * size + from) * inner;
          next.set(kept.subarray(at, at + inner), (o * pick.length + to) * inner);
        });
      kept = next;
    }
    inner *= pick?.length ?? size;
  }
  return kept;
}

/** Where an element lies, by axis. */
export type Place = Readonly<Partial<Record<Axis, number>>>;

/** The place of an element by its index. */
export function placeOf(index: number, axes: readonly Axis[], sizes: AxisSizes): Place {
  const place: Partial<Record<Axis, number>> = {};
  let rest = index;
  for (const axis of [...axes].reverse()) {
    place[axis] = rest % sizes[axis];
    rest = Math.floor(rest / sizes[axis]);
  }
  return place;
}
