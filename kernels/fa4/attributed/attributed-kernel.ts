import { RequestError } from '../../../src/request-error.js';
import type { Problem } from '../../../src/problem/index.js';
import type { AttributedKernel, AttributedPiece } from '../../attributed-kernel.js';
import { checkChoices } from '../../run-groups.js';
import type { Fa4Configuration } from '../forward-configuration.js';
import type { Fa4Format } from '../forward-formats.js';
import { createAttributedForward } from './attributed-forward.js';
import type { AttributedTileResult } from './attributed-tile.js';
import { blockWeights } from './block-weights.js';
import { techniqueDefinitions, techniques, type EmulatedTechniques } from './techniques.js';

/** A tile's results as every kernel model gives them. */
function pieceOf(
  { outputs, lse, lags, largestKeys, largestExponents, rowSums }: AttributedTileResult,
  { first, rows }: { readonly first: number; readonly rows: number },
  format: Fa4Format,
): AttributedPiece {
  const weights = largestExponents.map((exponent) => 2 ** exponent);
  return {
    firstRow: first,
    rows,
    outputs,
    lse,
    lags,
    largestWeights: {
      keys: largestKeys,
      weights,
      rounded: blockWeights(weights, format).rounded,
      divisors: rowSums,
    },
  };
}

/**
 * FlashAttention-4's forward on a problem with techniques that can be emulated or exact, a piece for
 * each tile of queries; see `createAttributedForward`.
 *
 * @param settingsOf the configuration as settings, by key
 * @throws RequestError for a problem that cannot be attributed and for a configuration out of range
 */
export function attributedFa4Kernel(
  problem: Problem,
  overrides: Partial<Fa4Configuration>,
  settingsOf: (configuration: Fa4Configuration) => AttributedKernel['settings'],
): AttributedKernel {
  const { shape, configuration, format, tiles, rowsOf } = createAttributedForward(
    problem,
    [],
    overrides,
  );
  return {
    model: 'fa4',
    shape,
    outFormat: configuration.outFormat,
    settings: settingsOf(configuration),
    techniques,
    definitions: techniqueDefinitions,
    pieces: tiles,
    rowsOf,
    prepareRuns: (choices) => {
      checkChoices('fa4', techniques, choices);
      const known = choices as readonly EmulatedTechniques[];
      const { runTile } = createAttributedForward(problem, known, configuration);
      return (piece) => pieceOf(runTile(piece), rowsOf(piece), format);
    },
  };
}

/**
 * Refuses variants of the kernel: which technique a bug belongs to is not a matter of emulating it.
 * @throws RequestError for settings with a variant other than `none`
 */
export function checkAttributedVariant(settings: ReadonlyMap<string, string>): void {
  const variant = settings.get('variant') ?? 'none';
  if (variant !== 'none')
    throw new RequestError(
      `variant is ${JSON.stringify(variant)}; the attribution of fa4 has no variants: leave it out`,
    );
}
