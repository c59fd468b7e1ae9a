import { RequestError } from '../../../src/request-error.js';
import { checkKeys, choiceValue, givenValues, type KernelSettings } from '../../setting-values.js';
import type { RecurrentModel, RecurrentModelSettings } from './models.js';

/** The most tokens of a chunk, and rows of a block of the inverse. */
const mostTokens = 1024;

function tokens(key: string, text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= mostTokens) return count;
  throw new RequestError(
    `${key} is ${JSON.stringify(text)}; give a whole number from 1 to ${mostTokens}`,
  );
}

function inverseOf(key: string, text: string): NonNullable<RecurrentModelSettings['inverse']> {
  if (text === 'substitution') return text;
  if (/^\d+$/.test(text)) return { block: tokens(key, text) };
  throw new RequestError(
    `${key} is ${JSON.stringify(text)}; give substitution, or the rows of a block, as in 16`,
  );
}

/** The format of a state as text. */
function stateOf(key: string, text: string) {
  return choiceValue(key, text, ['fp32', 'bf16', 'fp16'] as const);
}

/**
 * The settings of a model of linear attention that are given as text.
 * @throws RequestError for a setting that it does not have, and for a value that is none
 */
export function readRecurrentSettings(
  model: RecurrentModel,
  texts: KernelSettings,
): RecurrentModelSettings {
  checkKeys(model.name, model.settings, texts);
  const given = givenValues(texts);
  const state = given('state', stateOf);
  return {
    chunk: given('chunk', tokens),
    inverse: given('inverse', inverseOf),
    ...(state && { formats: { state } }),
  };
}
