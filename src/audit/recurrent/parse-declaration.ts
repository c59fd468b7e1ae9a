import { RequestError } from '../../request-error.js';
import {
  largestRecurrentChunk,
  recurrentIntermediateFormats,
  recurrentPresets,
  recurrentStateFormats,
  type RecurrentDeclaration,
} from './declaration.js';

/** What can be declared, with the words for its values. */
const vocabulary: Readonly<Record<keyof RecurrentDeclaration, readonly string[] | 'whole'>> = {
  form: ['recurrent', 'chunked'],
  chunk: 'whole',
  state: recurrentStateFormats,
  intermediate: recurrentIntermediateFormats,
};

/** The names of what can be declared of a kernel of linear attention. */
export const recurrentPremises = Object.keys(vocabulary) as readonly (keyof RecurrentDeclaration)[];

/** A preset by its name. @throws RequestError for a name that is none */
function presetNamed(name: string, where: string): RecurrentDeclaration {
  const presets: Readonly<Record<string, RecurrentDeclaration>> = recurrentPresets;
  if (Object.hasOwn(presets, name)) return presets[name];
  throw new RequestError(
    `${where} is ${JSON.stringify(name)}; for linear attention give ${Object.keys(presets).join(', ')}, or name=value (${recurrentPremises.join(', ')})`,
  );
}

function valueOf(name: string, text: string, where: string): Partial<RecurrentDeclaration> {
  if (!Object.hasOwn(vocabulary, name))
    throw new RequestError(
      `${where} has ${JSON.stringify(name)}; the premises of linear attention are ${recurrentPremises.join(', ')}`,
    );
  const values = vocabulary[name as keyof RecurrentDeclaration];
  if (values !== 'whole') {
    if (values.includes(text)) return { [name]: text };
    throw new RequestError(
      `${where} has ${name} ${JSON.stringify(text)}; give ${values.join(', ')}`,
    );
  }
  const count = Number(text);
  if (text.trim() !== '' && Number.isInteger(count) && count >= 1 && count <= largestRecurrentChunk)
    return { [name]: count };
  throw new RequestError(
    `${where} has ${name} ${JSON.stringify(text)}; give a whole number of tokens from 1 to ${largestRecurrentChunk}`,
  );
}

/**
 * A declaration of a kernel of linear attention as text: names of presets, and premises as name=value, separated by commas; later
 * ones replace earlier ones.
 * @param where the source of the declaration, which messages begin with
 * @throws RequestError for an unknown preset, premise or value
 */
export function parseRecurrentDeclaration(text: string, where: string): RecurrentDeclaration {
  let declared: RecurrentDeclaration = {};
  for (const part of text.split(',').map((word) => word.trim())) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    const said =
      equals < 0
        ? presetNamed(part, where)
        : valueOf(part.slice(0, equals), part.slice(equals + 1), where);
    declared = { ...declared, ...said };
  }
  return declared;
}
