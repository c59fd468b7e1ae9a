import type { Sequence } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { drawFactors, drawFeatures } from '../features/draw-features.js';
import type { FeatureKind } from '../features/feature-kinds.js';
import { sequencesOf } from '../features/feature-request.js';
import { drawForm } from '../features/stored-forms.js';
import { decodeProblem, encodeProblem, type PlainProblem } from '../plain-problem.js';
import { normalValues } from '../values.js';
import { slopeRegimes, stepRegimes } from './climb-regimes.js';
import { gradientRegimes } from './gradient-regimes.js';
import { levelRegimes, magnitudeRegimes } from './magnitude-regimes.js';
import { maximaRegimes } from './maxima-regimes.js';
import type { Regime, RegimeRequest } from './regime.js';
import { servedRegimes } from './served-regimes.js';
import { normalRegimes, valueSumRegimes } from './value-regimes.js';

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
    const features =
      kinds.length === 0 ? undefined : drawFeatures(kinds, request, regime.drawFeatures?.(request));
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
