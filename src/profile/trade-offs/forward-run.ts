import { fa4Model } from '../../../kernels/index.js';
import { decodeToFloat64, formats, storageOf, type FormatName } from '../../formats/index.js';
import { RequestError } from '../../request-error.js';
import type { Problem } from '../../problem/index.js';
import { scoreProblem } from '../../../properties/index.js';

/** What FlashAttention-4's forward made of a problem. */
export interface ForwardRun {
  /** [batch, heads, queries, vDim], decoded. */
  readonly out: Float64Array;
  readonly outFormat: FormatName;
  /** [batch, heads, queries], natural logarithm. */
  readonly lse: Float32Array;
  /** What the model counted, summed over its tiles. */
  readonly counters: Readonly<Record<string, number>>;
  /** Every setting of the model with its value. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  readonly evidence: readonly string[];
}

/** A setting as the model reads it: an infinite number is `inf`. */
function settingText(value: string | number): string {
  return value === Infinity ? 'inf' : String(value);
}

/**
 * Runs FlashAttention-4's forward on a problem, bit for bit, on this thread.
 * @param settings what to choose otherwise than FlashAttention-4 would, by the model's keys
 * @throws RequestError for a problem that the model does not take and for settings out of range
 */
export function runForward(
  problem: Problem,
  settings: Readonly<Record<string, string | number>>,
): ForwardRun {
  const texts = Object.entries(settings).map(([key, value]) => [key, settingText(value)] as const);
  const kernel = fa4Model.prepare(problem, new Map(texts));
  const { shape, outFormat, pieces, evidence } = kernel;
  const format = formats[outFormat];
  const rows = shape.batch * shape.heads * shape.queries;
  const out = new Float64Array(rows * shape.vDim);
  const lse = new Float32Array(rows);
  const counters: Record<string, number> = {};
  for (let i = 0; i < pieces; i++) {
    const piece = kernel.run(i);
    out.set(decodeToFloat64(storageOf(format, piece.out), format), piece.firstRow * shape.vDim);
    lse.set(piece.lse, piece.firstRow);
    for (const [name, count] of Object.entries(piece.counters))
      counters[name] = (counters[name] ?? 0) + count;
  }
  return { out, outFormat, lse, counters, settings: kernel.settings, evidence };
}

/** Formats of inputs that attention kernels have. */
const inputFormats: readonly FormatName[] = ['bf16', 'fp16', 'e4m3', 'e5m2'];

/** The formats that FlashAttention-4's model takes, found by asking it. */
export function modelledFormats(): FormatName[] {
  return inputFormats.filter((format) => {
    const sizes = { queries: 1, keys: 1, dim: 16 };
    try {
      fa4Model.prepare(scoreProblem('normal-1', { ...sizes, format, seed: 0 }), new Map());
      return true;
    } catch (error) {
      if (error instanceof RequestError) return false;
      throw error;
    }
  });
}
