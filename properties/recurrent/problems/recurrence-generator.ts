import type { FormatName } from '../../../src/formats/index.js';
import { recurrentFamilies } from '../../../src/problem/index.js';
import { RequestError } from '../../../src/request-error.js';
import { randomValues, type RandomValues } from '../../problems/index.js';
import type { InputName } from './axes.js';
import type { RecurrentConstraints } from './constraints.js';
import { drawSizes, oneOf } from './draw-sizes.js';
import { namesOf, storedInput, typicalValues } from './draw-values.js';
import { drawSteps } from './mamba2-steps.js';
import { axisSizes, type PlainInput, type PlainRecurrence } from './plain-recurrence.js';
import { narrowedTo, recurrentRegime, type RecurrentRegimeName } from './regimes.js';

/** Draws after which a regime gives up. */
const mostDraws = 100;

/** The epsilon of normalisations, that of flash-linear-attention. */
const usualEpsilon = 1e-6;

/** Inputs that are fp32 as kernels take them: gates, what Mamba-2 has of each head, gradients of states. */
const fp32Inputs: readonly InputName[] = ['g', 'A', 'D', 'dt_bias', 'dfinal_state'];

/** The format of an input. */
function formatOf(name: InputName, format: FormatName, state: FormatName): FormatName {
  if (name === 'initial_state') return state;
  return fp32Inputs.includes(name) ? 'fp32' : format;
}

/** The settings of a problem; mamba2 has no scale and no normalisation. */
function drawSettings(
  family: PlainRecurrence['family'],
  normalisation: boolean,
  random: RandomValues,
): Pick<PlainRecurrence, 'scale' | 'epsilon' | 'steps'> {
  if (family === 'mamba2') return { scale: null, epsilon: null, steps: drawSteps(random) };
  return {
    scale: oneOf([null, null, 1, 0.3], random),
    epsilon: normalisation && random.uniform() < 0.3 ? usualEpsilon : null,
    steps: null,
  };
}

/** Which of the inputs that mamba2 may leave out a problem has; gradients are not judged beside a gate. */
function drawOptions(isMamba2: boolean, gradients: boolean, random: RandomValues) {
  if (!isMamba2) return { hasSkip: false, hasGate: false, hasBias: false };
  const [hasSkip, hasBias] = [random.uniform() < 0.7, random.uniform() < 0.7];
  return { hasSkip, hasBias, hasGate: !gradients && random.uniform() < 0.4 };
}

/** A problem of a regime that its `holds` need not recognise. */
function drawOnce(
  constraints: RecurrentConstraints,
  name: RecurrentRegimeName,
  seed: number,
): PlainRecurrence {
  const random = randomValues(seed);
  const regime = recurrentRegime(name);
  const { families, formats, initialState, normalisation, gradients } = constraints;
  const family = oneOf(families, random);
  const format = oneOf(formats, random);
  const lengths = regime.lengths?.(constraints, random) ?? null;
  const { leastKeyDim = () => 1 } = regime;
  const drawnSizes = drawSizes(constraints, { lengths, leastKeyDim }, random);
  const isMamba2 = family === 'mamba2';
  // Its gradients of A, D and dt_bias are judged of a batch of one.
  const isOneEntry = isMamba2 && gradients && !drawnSizes.isPacked;
  const sizes = isOneEntry
    ? { ...drawnSizes, lengths: drawnSizes.lengths.slice(0, 1) }
    : drawnSizes;
  const hasInitialState = initialState.length > 0 && random.uniform() < 0.5;
  const state = hasInitialState ? oneOf(initialState, random) : 'fp32';
  const { keyHeads, groupSize, ...others } = sizes;
  const outline = {
    ...others,
    family,
    keyHeads,
    valueHeads: keyHeads * groupSize,
    ...drawSettings(family, normalisation, random),
  };
  const along = axisSizes(outline);
  const names = namesOf(family, {
    hasInitialState,
    hasDout: gradients,
    hasDfinalState: random.uniform() < 0.5,
    ...drawOptions(isMamba2, gradients, random),
  });
  const hasSoftplus = outline.steps?.dtSoftplus === true;
  const values = typicalValues({ family, names, sizes: along, hasSoftplus }, random);
  const drawn = regime.draw?.({
    values,
    sizes: along,
    lengths: sizes.lengths,
    law: recurrentFamilies[family],
    format,
    random,
  });
  const inputs = names.map((input): [InputName, PlainInput] => [
    input,
    storedInput(
      formatOf(input, format, state),
      drawn?.[input] ?? values[input] ?? new Float64Array(0),
    ),
  ]);
  return {
    ...outline,
    inputs: Object.fromEntries(inputs) as unknown as PlainRecurrence['inputs'],
  };
}

/**
 * A problem of a regime, the same for the same seed.
 * @throws RequestError where the constraints leave none
 */
export function drawRecurrence(
  given: RecurrentConstraints,
  regime: RecurrentRegimeName,
  seed: number,
): PlainRecurrence {
  const constraints = narrowedTo(regime, given);
  for (let draw = 0; constraints !== null && draw < mostDraws; draw++) {
    const plain = drawOnce(constraints, regime, seed + draw * 0x9e3779b1);
    if (recurrentRegime(regime).holds(plain, constraints.chunk)) return plain;
  }
  throw new RequestError(
    `the promises leave no problem of regime ${regime}; promise more families, dimensions or lengths, or leave the regime out`,
  );
}
