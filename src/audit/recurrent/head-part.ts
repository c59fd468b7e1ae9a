import { allocateStorage, formats, patternsOf, storageOf } from '../../formats/index.js';
import type {
  GateInputs,
  Mamba2Inputs,
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentShape,
  Tensor,
} from '../../problem/index.js';

/** A batch entry and a key head of a problem, with the value heads that share it. */
export interface HeadPart {
  readonly entry: number;
  readonly keyHead: number;
}

/** The parts of a problem, in the order of their heads. */
export function headParts({ batch, keyHeads }: RecurrentShape): HeadPart[] {
  return Array.from({ length: batch * keyHeads }, (_, i) => ({
    entry: Math.floor(i / keyHeads),
    keyHead: i % keyHeads,
  }));
}

/** A run of consecutive indices of an axis. */
interface AxisRange {
  readonly axis: number;
  readonly first: number;
  readonly count: number;
}

/** The part of a tensor in a range of one axis. Bits are copied. */
function sliceAxis(tensor: Tensor, { axis, first, count }: AxisRange): Tensor {
  const format = formats[tensor.format];
  const product = (sizes: readonly number[]) => sizes.reduce((a, b) => a * b, 1);
  const outer = product(tensor.shape.slice(0, axis));
  const inner = product(tensor.shape.slice(axis + 1));
  const size = tensor.shape[axis];
  const source = patternsOf(tensor.data, format);
  const data = allocateStorage(format, outer * count * inner);
  const target = patternsOf(data, format);
  const words = target.length / Math.max(1, data.length);
  for (let i = 0; i < outer; i++) {
    const from = (i * size + first) * inner * words;
    target.set(source.subarray(from, from + count * inner * words), i * count * inner * words);
  }
  const shape = tensor.shape.map((length, at) => (at === axis ? count : length));
  return { format: tensor.format, shape, data: storageOf(format, target) };
}

/** A problem, and what its gradients begin with. */
export interface RecurrentTask {
  readonly problem: RecurrentProblem;
  readonly gradientInputs: RecurrentGradientInputs | undefined;
}

/** A part as a task of its own, of one key head and a batch of one. */
export function partOfTask(
  { problem, gradientInputs }: RecurrentTask,
  { batch, keyHeads, valueHeads }: RecurrentShape,
  { entry, keyHead }: HeadPart,
): RecurrentTask {
  const group = valueHeads / keyHeads;
  const ofKeys = { axis: 2, first: keyHead, count: 1 };
  const ofValues = { axis: 2, first: keyHead * group, count: group };
  const ofEntry = { axis: 0, first: entry, count: 1 };
  const cut = (tensor: Tensor, heads: AxisRange) => sliceAxis(sliceAxis(tensor, ofEntry), heads);
  // Packed sequences are all of the one batch entry.
  const cutState = (tensor: Tensor) =>
    sliceAxis(batch === 1 ? tensor : sliceAxis(tensor, ofEntry), { ...ofValues, axis: 1 });
  const { q, k, v, g, beta, gateInputs, strengthLogits, initialState, mamba2 } = problem;
  const ofHeads = (tensor: Tensor) => sliceAxis(tensor, { ...ofValues, axis: 0 });
  return {
    problem: {
      ...problem,
      firstHead: (problem.firstHead ?? 0) + ofValues.first,
      q: cut(q, ofKeys),
      k: cut(k, ofKeys),
      v: cut(v, ofValues),
      ...(g ? { g: cut(g, ofValues) } : {}),
      ...(beta ? { beta: cut(beta, ofValues) } : {}),
      ...(gateInputs ? { gateInputs: cutGates(gateInputs, ofHeads, (a) => cut(a, ofValues)) } : {}),
      ...(strengthLogits ? { strengthLogits: cut(strengthLogits, ofValues) } : {}),
      ...(initialState ? { initialState: cutState(initialState) } : {}),
      ...(mamba2 ? { mamba2: cutMamba2(mamba2, (tensor) => cut(tensor, ofValues), ofValues) } : {}),
    },
    gradientInputs: gradientInputs && {
      dout: cut(gradientInputs.dout, ofValues),
      dfinalState: gradientInputs.dfinalState && cutState(gradientInputs.dfinalState),
    },
  };
}

/** What the gates of some heads are made of. */
const cutGates = (
  { aLog, a, dtBias }: GateInputs,
  ofHeads: (tensor: Tensor) => Tensor,
  ofTokens: (tensor: Tensor) => Tensor,
): GateInputs => ({ aLog: ofHeads(aLog), a: ofTokens(a), dtBias: dtBias && ofHeads(dtBias) });

/** The inputs of Mamba-2 that some heads have. */
function cutMamba2(
  { dt, z, a, d, dtBias, ...settings }: Mamba2Inputs,
  cut: (tensor: Tensor) => Tensor,
  heads: AxisRange,
): Mamba2Inputs {
  const ofHeads = (tensor: Tensor) => sliceAxis(tensor, { ...heads, axis: 0 });
  return {
    ...settings,
    dt: cut(dt),
    a: ofHeads(a),
    z: z && cut(z),
    d: d && ofHeads(d),
    dtBias: dtBias && ofHeads(dtBias),
  };
}

/** The problem whose sequences begin anew, with a state of 0, at every `tokens`-th token. */
export function cutProblem(
  problem: RecurrentProblem,
  { batch, tokens, sequences }: RecurrentShape,
  every: number,
): RecurrentProblem {
  const flat = (tensor: Tensor): Tensor => ({
    ...tensor,
    shape: [1, batch * tokens, ...tensor.shape.slice(2)],
  });
  const ends = new Set([0]);
  for (let entry = 0; entry < batch; entry++)
    for (let token = 0; token < tokens; token += every) ends.add(entry * tokens + token);
  for (const { end } of sequences) ends.add(end);
  ends.add(batch * tokens);
  const { family, q, k, v, g, beta, scale, firstHead, normalisation, mamba2 } = problem;
  const { gateInputs, gateBase, strengthLogits } = problem;
  return {
    family,
    ...(scale === undefined ? {} : { scale }),
    ...(firstHead === undefined ? {} : { firstHead }),
    ...(normalisation === undefined ? {} : { normalisation }),
    q: flat(q),
    k: flat(k),
    v: flat(v),
    ...(g ? { g: flat(g) } : {}),
    ...(gateBase ? { gateBase } : {}),
    ...(beta ? { beta: flat(beta) } : {}),
    ...(gateInputs ? { gateInputs: { ...gateInputs, a: flat(gateInputs.a) } } : {}),
    ...(strengthLogits ? { strengthLogits: flat(strengthLogits) } : {}),
    ...(mamba2
      ? { mamba2: { ...mamba2, dt: flat(mamba2.dt), z: mamba2.z && flat(mamba2.z) } }
      : {}),
    cuSeqlens: [...ends].sort((a, b) => a - b),
  };
}
