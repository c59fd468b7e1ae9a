import type { ErrorObject } from 'ajv/dist/2020.js';
import type { LawStrength } from '../../../properties/index.js';
import { printable, readText } from '../../io/index.js';
import { describeViolation } from '../../report/validation/index.js';
import { RequestError } from '../../request-error.js';
import { nearClause } from '../../words/index.js';
import { parseName } from '../options/parse-names.js';

/** The commands that list the properties of each contract. */
export const propertyLists = {
  attention: 'flashproof check --list',
  recurrent: 'flashproof check --contract recurrent --list',
} as const;

/** The schema of a truth. */
export const flag = { type: 'boolean' };

/** The schema of a whole number from 1 on. */
export const atLeastOne = { type: 'integer', minimum: 1 };

/** The schema of a list of one thing at least. */
export function listOf(items: object): object {
  return { type: 'array', minItems: 1, items };
}

/** The schema of an object of some members, each of which may be left out. */
export function objectOf(properties: object): object {
  return { type: 'object', additionalProperties: false, properties };
}

/** The largest file of promises, in bytes; ours take some hundreds. */
const mostPromiseBytes = 1 << 20;

/** The most characters of a file's errors that a message repeats. */
const mostShown = 600;

/** A violation in words; of a name that is none of the known ones, with the nearest. */
function toldViolation(error: ErrorObject): string {
  const { keyword, instancePath, params, parentSchema } = error;
  if (keyword !== 'additionalProperties') return describeViolation(error);
  const name = String(params['additionalProperty']);
  const known = Object.keys((parentSchema?.['properties'] ?? {}) as object);
  const where = instancePath === '' ? '' : `${instancePath} `;
  return `${where}has ${JSON.stringify(name)}, which it does not know${nearClause(name, known)}; it may have ${known.join(', ')}`;
}

/**
 * Reads a file of promises.
 * @param schema what it may hold: JSON Schema (2020-12)
 * @throws RequestError when it cannot be read, or is no JSON of such promises
 */
export async function readPromises<Promises>(path: string, schema: object): Promise<Promises> {
  const text = await readText(path, mostPromiseBytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new RequestError(
      `${printable(path)}: is no JSON: ${printable((error as Error).message)}; write one object of promises`,
    );
  }
  const { Ajv2020 } = await import('ajv/dist/2020.js');
  // With the schema of each error: it has the names that are known.
  const options = { allErrors: true, strict: true, verbose: true };
  const validate = new Ajv2020(options).compile<Promises>(schema);
  if (validate(value)) return value;
  const violations = printable((validate.errors ?? []).map(toldViolation).join('; '));
  const shown = violations.length > mostShown ? `${violations.slice(0, mostShown)}…` : violations;
  throw new RequestError(`${printable(path)}: ${shown}; see flashproof check --help`);
}

type Strength = LawStrength | 'none';

/**
 * The value of a --promise option.
 * @param laws by id, with the strengths that each may be promised in
 * @param listing the command that lists them
 * @throws RequestError for anything but <property>=<strength>
 */
export function parsePromise<Id extends string>(
  text: string,
  laws: Readonly<Record<Id, { readonly strengths: readonly LawStrength[] }>>,
  listing: string,
): readonly [Id, Strength] {
  const equals = text.indexOf('=');
  if (equals < 1)
    throw new RequestError(
      `--promise is ${JSON.stringify(text)}; give <property>=bits, =bound or =none`,
    );
  const ids = Object.keys(laws) as Id[];
  const id = parseName(text.slice(0, equals), ids, 'property', '--promise', listing);
  const known: readonly Strength[] = [...laws[id].strengths, 'none'];
  const strength = known.find((name) => name === text.slice(equals + 1));
  if (strength === undefined)
    throw new RequestError(
      `--promise is ${JSON.stringify(text)}; property ${id} can be promised as ${known.join(', ')}`,
    );
  return [id, strength];
}
