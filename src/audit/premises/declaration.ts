import type { PremiseDeclaration } from '../../../kernels/index.js';
import { RequestError } from '../../request-error.js';
import { nearClause } from '../../words/index.js';
import {
  premiseNames,
  premisePresets,
  premiseWords,
  unboundedPremises,
  type PremiseName,
} from './premise-words.js';

/** "scores=bf16", as the flag takes it. */
function premiseText(name: PremiseName, value: string | number): string {
  return `${name}=${value}`;
}

/** The declared premises, in the order of the vocabulary. */
function declaredEntries(
  declared: PremiseDeclaration,
): (readonly [PremiseName, string | number])[] {
  return premiseNames.flatMap((name) => {
    const value = declared[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** "any correct kernel", or "any correct kernel with scores in bf16 and P in bf16". */
export function describeDeclaration(declared: PremiseDeclaration): string {
  const clauses = declaredEntries(declared).map(([name, value]) =>
    premiseWords[name].clause(String(value)),
  );
  if (clauses.length === 0) return 'any correct kernel';
  const last = clauses.pop()!;
  return `any correct kernel with ${clauses.length === 0 ? last : `${clauses.join(', ')} and ${last}`}`;
}

/** The flags that declare the same. */
export function declarationFlags(declared: PremiseDeclaration): string {
  return declaredEntries(declared)
    .map(([name, value]) => `--premise ${premiseText(name, value)}`)
    .join(' ');
}

/**
 * A declaration, checked: names and values of the vocabulary only.
 * @param where the source of the declaration, which messages begin with
 * @throws RequestError for an unknown premise or value
 */
export function checkDeclaration(declared: object, where: string): PremiseDeclaration {
  for (const [name, value] of Object.entries(declared)) {
    if (!Object.hasOwn(premiseWords, name))
      throw new RequestError(
        `${where} has ${JSON.stringify(name)}${nearClause(name, premiseNames)}; the premises are ${premiseNames.join(', ')}`,
      );
    if (value === undefined) continue;
    const { values, number } = premiseWords[name as PremiseName];
    if (values.includes(value as string)) continue;
    const isNumber =
      number !== null &&
      typeof value === 'number' &&
      value > 0 &&
      (unboundedPremises.includes(name) ? value < Infinity : value < 1);
    if (isNumber) continue;
    const choices = [...values, ...(number === null ? [] : [`a number (${number})`])];
    throw new RequestError(
      `${where} has ${name} ${JSON.stringify(value)}; give ${choices.join(', ')}`,
    );
  }
  return declared as PremiseDeclaration;
}

/**
 * A declaration as text: names of presets, and premises as name=value, separated by commas; later ones
 * replace earlier ones.
 * @throws RequestError for an unknown preset, premise or value
 */
export function parseDeclaration(text: string, where: string): PremiseDeclaration {
  let declared: PremiseDeclaration = {};
  for (const part of text.split(',').map((word) => word.trim())) {
    if (part === '') continue;
    const equals = part.indexOf('=');
    if (equals < 0) {
      if (!Object.hasOwn(premisePresets, part))
        throw new RequestError(
          `${where} is ${JSON.stringify(part)}; give name=value (${premiseNames.join(', ')}), or one of ${Object.keys(premisePresets).join(', ')}`,
        );
      declared = { ...declared, ...premisePresets[part].premises };
      continue;
    }
    const name = part.slice(0, equals);
    const value = part.slice(equals + 1);
    // An offset of n is a factor of 2^n.
    const power = /^2\^(-?\d{1,3})$/.exec(value);
    const number = power === null ? Number(value) : 2 ** Number(power[1]);
    const isNumber = value.trim() !== '' && Number.isFinite(number);
    declared = {
      ...declared,
      ...checkDeclaration({ [name]: isNumber ? number : value }, where),
    };
  }
  return declared;
}
