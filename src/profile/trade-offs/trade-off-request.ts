import { scoreProblem, scoreRegimeNames, type ScoreRegimeName } from '../../../properties/index.js';
import { type Fa4Architecture, fa4ArchitectureOf } from '../../../kernels/index.js';
import type { MufuArchitecture } from '../../hardware/index.js';
import { RequestError } from '../../request-error.js';
import { weightFormats, type WeightFormat } from '../limits/weight-formats.js';
import { modelledFormats } from './forward-run.js';

/** The problems on which a trade-off is measured; members that are left out are the technique's choice. */
export interface TradeOffOptions {
  readonly regimes?: readonly string[];
  readonly formats?: readonly string[];
  readonly queries?: number;
  readonly keys?: number;
  /** Head dimension of Q, K and V. */
  readonly dim?: number;
  readonly seed?: number;
  readonly architecture?: MufuArchitecture;
}

/** The sizes of the problems, and their seed. */
export interface TradeOffSizes {
  readonly queries: number;
  readonly keys: number;
  readonly dim: number;
  readonly seed: number;
}

/** The problems of a trade-off: every regime in every format. */
export interface TradeOffRequest extends TradeOffSizes {
  readonly regimes: readonly ScoreRegimeName[];
  readonly formats: readonly WeightFormat[];
  /** Architecture whose tensor cores and special function unit are modelled. */
  readonly architecture: Fa4Architecture;
}

/** One problem of a trade-off. */
export interface TradeOffCase {
  readonly format: WeightFormat;
  readonly regime: ScoreRegimeName;
}

const defaultSeed = 20_260_504;

/** Ranges of the sizes: they fit in memory, and the head dimension leaves room for one more. */
const sizeLimits: Readonly<Record<keyof TradeOffSizes, readonly [number, number]>> = {
  queries: [1, 16_384],
  keys: [1, 131_072],
  dim: [1, 192],
  seed: [0, 2 ** 32 - 1],
};

function chosen<Name extends string>(
  what: string,
  given: readonly string[] | undefined,
  known: readonly Name[],
  usual: readonly Name[],
): readonly Name[] {
  for (const name of given ?? [])
    if (!known.includes(name as Name))
      throw new RequestError(`no ${what} ${JSON.stringify(name)}; choose from ${known.join(', ')}`);
  if (given === undefined || given.length === 0) return usual;
  return known.filter((name) => given.includes(name));
}

/**
 * The request with its defaults filled in: all formats that the model supports, the architecture
 * sm_100.
 * @throws RequestError for an unknown regime or format, for one or an architecture that the model does not support and
 * for sizes out of range
 */
export function resolveTradeOff(
  options: TradeOffOptions,
  usual: {
    readonly regimes: readonly ScoreRegimeName[];
    readonly queries: number;
    readonly keys: number;
    readonly dim: number;
  },
): TradeOffRequest {
  const { queries = usual.queries, keys = usual.keys, dim = usual.dim } = options;
  const { seed = defaultSeed } = options;
  const architecture = fa4ArchitectureOf(options.architecture ?? 'sm_100');
  const sizes: TradeOffSizes = { queries, keys, dim, seed };
  for (const [name, [least, most]] of Object.entries(sizeLimits)) {
    const size = sizes[name as keyof TradeOffSizes];
    if (!(Number.isInteger(size) && size >= least && size <= most))
      throw new RequestError(`${name} is ${size}; give a whole number from ${least} to ${most}`);
  }
  const known = modelledFormats();
  const formats = chosen(
    'format',
    options.formats,
    weightFormats,
    weightFormats.filter((format) => known.includes(format)),
  );
  const missing = formats.find((format) => !known.includes(format));
  if (missing !== undefined)
    throw new RequestError(
      `the model of FlashAttention-4 takes no ${missing} inputs; choose from ${known.join(', ')}`,
    );
  const regimes = chosen('regime of scores', options.regimes, scoreRegimeNames, usual.regimes);
  // Sizes and formats that a regime cannot have are found here, before threads start.
  for (const regime of regimes)
    for (const format of formats) scoreProblem(regime, { queries: 1, keys: 1, dim, seed, format });
  return { ...sizes, formats, regimes, architecture };
}

/** Every regime in every format. */
export function tradeOffCases({ formats, regimes }: TradeOffRequest): TradeOffCase[] {
  return formats.flatMap((format) => regimes.map((regime) => ({ format, regime })));
}
