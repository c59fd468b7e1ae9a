import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  round,
  tensorScales,
  type Tensor,
} from '../../src/formats/index.js';
import type { Problem, ProblemShape } from '../../src/problem/index.js';
import { RequestError } from '../../src/request-error.js';
import type { ValueFormat } from '../promises.js';
import { microBlock, quantiseMicroBlocks } from './micro-blocks.js';

const { maxFinite: largestElement } = formats.e4m3;
const saturating = { overflow: 'saturate' } as const;

/** V rounded to e4m3 with a factor a column: max|v| / 448, of v·(448 / max|v|). As the paper of SageAttention 2 has it; no kernel was compared. */
function byColumn(values: Float64Array, { keys, vDim }: ProblemShape, v: Tensor): Tensor {
  const leading = v.shape.slice(0, -2);
  const heads = keys * vDim === 0 ? 0 : values.length / (keys * vDim);
  const factors = new Float64Array(heads * vDim);
  const elements = new Float64Array(values.length);
  for (let head = 0; head < heads; head++) {
    const first = head * keys * vDim;
    // Row by row, as the values lie in memory.
    const largest = new Float64Array(vDim);
    for (let j = 0, at = first; j < keys; j++)
      for (let c = 0; c < vDim; c++, at++) largest[c] = Math.max(largest[c], Math.abs(values[at]));
    const inverse = largest.map((x) => (x === 0 ? 0 : Math.fround(largestElement / x)));
    largest.forEach((x, c) => (factors[head * vDim + c] = Math.fround(x / largestElement)));
    for (let j = 0, at = first; j < keys; j++)
      for (let c = 0; c < vDim; c++, at++)
        elements[at] = round(formats.e4m3, Math.fround(values[at] * inverse[c]), saturating);
  }
  const scaled = { format: 'e4m3', shape: v.shape } as const;
  return {
    ...scaled,
    data: encodeFromFloat64(formats.e4m3, elements),
    scales: tensorScales(scaled, [
      {
        name: 'descale',
        format: 'fp32',
        values: factors,
        shape: [...leading, 1, vDim],
        blocks: [...leading.map(() => 1), Math.max(1, keys), 1],
      },
    ]),
  };
}

/** V in NVFP4, a factor for 16 keys of a column. */
function byMicroBlocks(values: Float64Array, { keys, vDim }: ProblemShape, v: Tensor): Tensor {
  const leading = v.shape.slice(0, -2);
  const heads = keys * vDim === 0 ? 0 : values.length / (keys * vDim);
  // The keys of a column one behind the other, as the blocks lie.
  const turned = values.map((_, at) => {
    const [head, rest] = [Math.floor(at / (keys * vDim)), at % (keys * vDim)];
    return values[(head * keys + (rest % keys)) * vDim + Math.floor(rest / keys)];
  });
  const micro = quantiseMicroBlocks(turned, keys);
  const perColumn = Math.ceil(keys / microBlock);
  const elements = values.map((_, at) => {
    const [head, rest] = [Math.floor(at / (keys * vDim)), at % (keys * vDim)];
    return micro.elements[(head * vDim + (rest % vDim)) * keys + Math.floor(rest / vDim)];
  });
  const factors = new Float64Array(heads * perColumn * vDim).map((_, at) => {
    const [head, rest] = [Math.floor(at / (perColumn * vDim)), at % (perColumn * vDim)];
    return micro.factors[(head * vDim + (rest % vDim)) * perColumn + Math.floor(rest / vDim)];
  });
  const scaled = { format: 'e2m1', shape: v.shape } as const;
  return {
    ...scaled,
    data: encodeFromFloat64(formats.e2m1, elements),
    scales: tensorScales(scaled, [
      {
        name: 'block_scale',
        format: 'e4m3',
        values: factors,
        shape: [...leading, perColumn, vDim],
        blocks: [...leading.map(() => 1), microBlock, 1],
      },
    ]),
  };
}

/**
 * V as a kernel has it that rounds or quantises V itself.
 * @throws RequestError for a V that is quantised already
 */
export function quantiseValues({ v }: Problem, shape: ProblemShape, format: ValueFormat): Tensor {
  if (v.scales !== undefined)
    throw new RequestError(
      `v is ${v.format} with factors; leave out values=${format}, or give V before it is quantised`,
    );
  const values = decodeTensor(v);
  if (format === 'e4m3') return byColumn(values, shape, v);
  if (format === 'nvfp4') return byMicroBlocks(values, shape, v);
  if (v.format === 'fp16') return v;
  return { format: 'fp16', shape: v.shape, data: encodeFromFloat64(formats.fp16, values) };
}
