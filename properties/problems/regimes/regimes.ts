import { formats } from '../../../src/formats/index.js';
import type { Sequence } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { drawFactors, drawFeatures } from '../features/draw-features.js';
import { withinCausal } from '../features/draw-lists.js';
import type { FeatureKind } from '../features/feature-kinds.js';
import { sequencesOf } from '../features/feature-request.js';
import { drawForm } from '../features/stored-forms.js';
import { decodeProblem, encodeProblem, type PlainProblem } from '../plain-problem.js';
import { fill, headRows, normalValues, rowOf, type RandomValues } from '../values.js';
import { slopeRegimes, stepRegimes } from './climb-regimes.js';
import { levelRegimes, magnitudeRegimes } from './magnitude-regimes.js';
import { maximaRegimes } from './maxima-regimes.js';
import { everyRow, maximum, type Regime, type RegimeRequest } from './regime.js';
import { servedRegimes } from './served-regimes.js';
import { normalRegimes, valueSumRegimes } from './value-regimes.js';

/** Distances below 0 of the scores of a deep row, in nats, and their upper limit: e^−LSE is infinite in fp32 from 89 on. */
const deep = { least: 128, most: 1024, scores: -96 };

/** Distance of rows of nearly constant values from their common row, relative to its size. */
const nearness = 2 ** -5;

/** Rows of V that are nearly one row; every head has its own. */
function nearlyConstant(
  values: Float64Array,
  rows: ReturnType<typeof headRows>,
  dim: number,
  random: RandomValues,
): Float64Array {
  for (const { firstKey, keys } of rows) {
    const common = fill(dim, () => random.sign() * (1 + random.uniform()));
    for (let key = firstKey; key < firstKey + keys; key++)
      rowOf(values, key, dim).set(
        common.map((x) => x * (1 + nearness * (2 * random.uniform() - 1))),
      );
  }
  return values;
}

/** Regimes that provoke gradients; by default only the laws of gradients are tried in them. */
const gradientRegimes = {
  'one-deep-query': {
    description: 'one query whose scores are 128 to 1024 nats below zero',
    provokes: 'e^score · e^−LSE in place of e^(score − LSE): 0 · ∞',
    sizes: () => ({ queries: { min: 1, max: 1 }, keys: { min: 1 } }),
    scales: ['default'],
    draw: ({ sizes, random }) => {
      const { qkDim } = sizes;
      const values = normalValues(sizes, random);
      const nats = random.integer(deep.least, deep.most);
      const size = Math.sqrt(nats / Math.sqrt(qkDim));
      for (const { firstQuery, queries, firstKey, keys } of headRows(sizes)) {
        const signs = fill(qkDim, random.sign);
        const near = (x: number) => x * size * (1 + random.uniform() / 64);
        for (let row = 0; row < queries; row++)
          rowOf(values.q, firstQuery + row, qkDim).set(signs.map(near));
        for (let row = 0; row < keys; row++)
          rowOf(values.k, firstKey + row, qkDim).set(signs.map((sign) => near(-sign)));
      }
      return values;
    },
    holds: (plain) =>
      plain.sizes.queries === 1 &&
      everyRow(plain, (raw, scale) => maximum(raw) * scale <= deep.scores),
  },
  'level-values': {
    description: 'rows of V alike but for three parts in a hundred',
    provokes: 'dP − D that cancels: a D of coarse or of other numbers',
    sizes: () => ({ keys: { min: 1 } }),
    draw: ({ sizes, random }) => {
      const values = normalValues(sizes, random);
      return { ...values, v: nearlyConstant(values.v, headRows(sizes), sizes.vDim, random) };
    },
    holds: ({ values, sizes, formats: { v: name } }) =>
      headRows(sizes).every(({ firstKey, keys }) => {
        const allowed = 4 * Math.max(nearness, 2 ** -formats[name].precision);
        for (let c = 0; c < sizes.vDim; c++) {
          let [least, most] = [Infinity, -Infinity];
          for (let key = firstKey; key < firstKey + keys; key++) {
            const x = values.v[key * sizes.vDim + c];
            [least, most] = [Math.min(least, x), Math.max(most, x)];
          }
          // Some more than was drawn, and two ulps where a format has few bits.
          if (most - least > allowed * Math.max(Math.abs(most), Math.abs(least))) return false;
        }
        return true;
      }),
  },
} satisfies Record<string, Regime>;

/** Normal scores, of standard deviation 1. */
const draw: Regime['draw'] = ({ sizes, random }) => normalValues(sizes, random);

/** Whether keys are in pages, and a sequence with queries has as many keys as a test asks for. */
function someLength(
  { features, form }: PlainProblem,
  test: (keys: number, pageSize: number) => boolean,
): boolean {
  const pages = form?.keys;
  if (pages?.kind !== 'paged') return false;
  const isOne = ({ queries, keys }: Sequence) => queries > 0 && test(keys, pages.pageSize);
  return (features?.sequences ?? []).some(isOne);
}

/** Keys that fill half of the last block. */
const halfOf = (blockKeys: number): number => Math.ceil(blockKeys / 2);

/** Regimes of keys in pages, by how their sequences end. */
const pageRegimes = {
  'partly-filled-pages': {
    description: 'pages: a sequence whose last page is not full',
    provokes: 'lengths that are counted in pages, and slots behind the last key that are read',
    features: ['paged'],
    sizes: () => ({ queries: { min: 1 }, keys: { min: 1 } }),
    draw,
    holds: (plain) => someLength(plain, (keys, pageSize) => keys % pageSize !== 0),
  },
  'half-filled-paged-tiles': {
    description: 'pages: a sequence that fills half of its last block, 64 keys beyond those of 128',
    provokes: 'a last block of which some pages are missing, or are those of another sequence',
    features: ['paged'],
    sizes: ({ blockKeys }) => ({ queries: { min: 1 }, keys: { min: halfOf(blockKeys) } }),
    tiled: true,
    draw,
    drawFeatures: ({ sizes: { queries, keys }, tiling: { blockKeys }, random }) => {
      const half = halfOf(blockKeys);
      const most = Math.floor((keys - half) / blockKeys);
      const length = half + random.integer(0, most) * blockKeys;
      const first = random.integer(0, keys - length);
      const begin = random.integer(0, queries - 1);
      const end = random.integer(begin + 1, queries);
      return { sequences: sequencesOf([begin, end, queries], [first, first + length, keys]) };
    },
    holds: (plain, { blockKeys }) =>
      someLength(plain, (keys) => keys % blockKeys === halfOf(blockKeys) % blockKeys),
  },
} satisfies Record<string, Regime>;

const table = {
  ...normalRegimes,
  ...slopeRegimes,
  ...stepRegimes,
  ...maximaRegimes,
  ...levelRegimes,
  ...magnitudeRegimes,
  ...valueSumRegimes,
  ...servedRegimes,
  ...pageRegimes,
  ...gradientRegimes,
} satisfies Record<string, Regime>;

/** The name of a regime. */
export type RegimeName = keyof typeof table;

/** Every regime by its name. */
export const regimes: Readonly<Record<RegimeName, Regime>> = table;

/** Every regime's name. */
export const regimeNames = Object.keys(table) as RegimeName[];

/** The default regimes of problems without features; seeds keep their meaning. */
export const usualRegimeNames = regimeNames.filter(
  (name) =>
    !Object.hasOwn(servedRegimes, name) &&
    !Object.hasOwn(pageRegimes, name) &&
    !Object.hasOwn(gradientRegimes, name),
);

/** The default regimes of problems with features. */
export const servedRegimeNames = regimeNames.filter(
  (name) => !Object.hasOwn(gradientRegimes, name),
);

/** The default regimes of the laws of gradients, beside those of other laws. */
export const gradientRegimeNames: readonly RegimeName[] = [
  'deeply-negative',
  'half-filled-tiles',
  'one-query',
  'one-key',
  ...(Object.keys(gradientRegimes) as (keyof typeof gradientRegimes)[]),
];

/** A regime in words. */
export interface RegimeDescription {
  /** The appearance of its problems, in one line; scores in nats unless it says otherwise. */
  readonly description: string;
  /** The behaviour of a kernel that it is meant to provoke, in one line. */
  readonly provokes: string;
}

/**
 * The appearance of the problems of a regime, and their purpose.
 * @throws RequestError for an unknown regime
 */
export function describeRegime(name: RegimeName): RegimeDescription {
  if (!Object.hasOwn(regimes, name))
    throw new RequestError(
      `no regime ${JSON.stringify(name)}; choose from ${regimeNames.join(', ')}`,
    );
  const { description, provokes } = regimes[name];
  return { description, provokes };
}

/**
 * The most draws of one problem; the last is taken as it is. At the sizes that regimes ask for, at least
 * every second draw hits, so that this many never miss.
 */
const mostDraws = 64;

/** Settings of a problem that a regime does not draw; the scale counts where the regime has none of its own. */
type RegimeFrame = Pick<PlainProblem, 'scale' | 'causal' | 'window' | 'softcap'>;

/**
 * A problem of a regime, in the frame, its tensors rounded to the format (to nearest even, magnitudes
 * beyond the largest finite number to that); drawn again while `holds` denies it.
 * @param kinds features that it has
 * @throws RequestError for sizes that the regime cannot be made of
 */
export function drawRegime(
  name: RegimeName,
  request: RegimeRequest,
  frame: RegimeFrame,
  kinds: readonly FeatureKind[] = [],
): PlainProblem {
  const regime = regimes[name];
  const { name: format } = request.format;
  for (let draws = 1; ; draws++) {
    const { scale = frame.scale, ...values } = regime.draw(request);
    const drawnFeatures =
      kinds.length === 0 ? undefined : drawFeatures(kinds, request, regime.drawFeatures?.(request));
    const features =
      drawnFeatures?.keyLists === undefined || !frame.causal
        ? drawnFeatures
        : { ...drawnFeatures, keyLists: withinCausal(drawnFeatures.keyLists, request.sizes) };
    const form = drawForm(kinds, request, features?.sequences?.length ?? 0);
    const drawn = decodeProblem(
      encodeProblem({
        ...frame,
        sizes: request.sizes,
        formats: { q: format, k: format, v: format },
        values,
        scale,
        features,
        ...(kinds.includes('descale')
          ? { factors: drawFactors({ ...request, sequences: features?.sequences ?? null }) }
          : {}),
      }),
    );
    const plain = form === null ? drawn : { ...drawn, form };
    if (draws === mostDraws || regime.holds(plain, request.tiling)) return plain;
  }
}
