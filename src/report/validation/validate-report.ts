import { readFile } from 'node:fs/promises';
import type { Ajv2020, ErrorObject } from 'ajv/dist/2020.js';
import { lazily } from '../../reuse/index.js';

/** Maximum number of violations that a message lists. */
const listedViolations = 12;

/** Keywords whose failure only says that a subschema failed; that failure is listed by itself. */
const wrappers: readonly string[] = ['if'];

/** The subject of a violation beyond ajv's message, by keyword. */
const subjects: Readonly<Record<string, string>> = {
  additionalProperties: 'additionalProperty',
  enum: 'allowedValues',
  const: 'allowedValue',
};

/** One violation of a JSON Schema in words: its place, the fault, and the allowed values. */
export function describeViolation({ instancePath, message, keyword, params }: ErrorObject): string {
  const subject = subjects[keyword];
  const detail = subject === undefined ? '' : ` (${JSON.stringify(params[subject])})`;
  return `${instancePath === '' ? '/' : instancePath} ${message ?? keyword}${detail}`;
}

/** The schemas that the package publishes; the others refer to the first. */
const schemaNames = [
  'report.schema.json',
  'audits.schema.json',
  'bound.schema.json',
  'check.schema.json',
] as const;
type SchemaName = (typeof schemaNames)[number];

/** Reads the schemas on its first call; ajv is loaded then, and not when this module is loaded. */
const loadSchemas = lazily(async (): Promise<Ajv2020> => {
  const read = async (name: SchemaName) =>
    JSON.parse(await readFile(new URL(`../json/${name}`, import.meta.url), 'utf8')) as object;
  const [{ Ajv2020 }, ...schemas] = await Promise.all([
    import('ajv/dist/2020.js'),
    ...schemaNames.map(read),
  ]);
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
  // Schemas that are added under names are compiled on first use: few commands need two.
  schemas.forEach((schema, i) => ajv.addSchema(schema, schemaNames[i]));
  return ajv;
});

async function validateAgainst(schema: SchemaName, value: unknown): Promise<void> {
  const validate = (await loadSchemas()).getSchema(schema)!;
  if (validate(value)) return;
  const violations = (validate.errors ?? [])
    .filter(({ keyword }) => !wrappers.includes(keyword))
    .map(describeViolation);
  const shown = violations.slice(0, listedViolations).join('; ');
  const more = violations.length - listedViolations;
  throw new Error(
    `a report breaks ${schema}, which is a bug in flashproof: ${shown}${more > 0 ? `; and ${more} more` : ''}`,
  );
}

/**
 * Checks an audit's report against report.schema.json (JSON Schema 2020-12), which the package
 * publishes.
 * @throws Error, not RequestError, when it does not conform: the tool itself makes reports. The
 * message lists the JSON pointer of each violation and the fault there.
 */
export function validateReport(value: unknown): Promise<void> {
  return validateAgainst('report.schema.json', value);
}

/**
 * Checks a report of several files against audits.schema.json.
 * @throws Error as `validateReport`
 */
export function validateAuditsReport(value: unknown): Promise<void> {
  return validateAgainst('audits.schema.json', value);
}

/**
 * Checks a report of bounds against bound.schema.json.
 * @throws Error as `validateReport`
 */
export function validateBoundReport(value: unknown): Promise<void> {
  return validateAgainst('bound.schema.json', value);
}

/**
 * Checks a report of a property suite against check.schema.json.
 * @throws Error as `validateReport`
 */
export function validateCheckReport(value: unknown): Promise<void> {
  return validateAgainst('check.schema.json', value);
}
