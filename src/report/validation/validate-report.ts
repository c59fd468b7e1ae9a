import type { ErrorObject } from 'ajv/dist/2020.js';
import { loadValidator, type SchemaName } from './schema-validators.js';

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

async function validateAgainst(schema: SchemaName, value: unknown): Promise<void> {
  const validate = await loadValidator(schema);
  if (validate(value)) return;
  const violations = (validate.errors ?? [])
    .filter(({ keyword }) => !wrappers.includes(keyword))
    .map(describeViolation);
  const shown = violations.slice(0, listedViolations).join('; ');
  const more = violations.length - listedViolations;
  throw new Error(
    `a report breaks ${schema}.schema.json, which is a bug in flashproof: ${shown}${more > 0 ? `; and ${more} more` : ''}`,
  );
}

/**
 * Checks an audit's report against report.schema.json (JSON Schema 2020-12), which the package
 * publishes.
 * @throws Error, not RequestError, when it does not conform: the tool itself makes reports. The
 * message lists the JSON pointer of each violation and the fault there.
 */
export function validateReport(value: unknown): Promise<void> {
  return validateAgainst('report', value);
}

/**
 * Checks the report of a file of any kind: one of linear attention against recurrent.schema.json, one of a link of the decode chain
 * against link.schema.json, one of several of them against chain.schema.json, others against report.schema.json.
 * @throws Error as `validateReport`
 */
export function validateFileReport(report: { readonly kind: string }): Promise<void> {
  const schemas: Partial<Record<string, SchemaName>> = {
    'recurrent-audit': 'recurrent',
    'link-audit': 'link',
    'chain-audit': 'chain',
  };
  return validateAgainst(schemas[report.kind] ?? 'report', report);
}

/**
 * Checks a report of several files against audits.schema.json.
 * @throws Error as `validateReport`
 */
export function validateAuditsReport(value: unknown): Promise<void> {
  return validateAgainst('audits', value);
}

/**
 * Checks a report of bounds against bound.schema.json.
 * @throws Error as `validateReport`
 */
export function validateBoundReport(value: unknown): Promise<void> {
  return validateAgainst('bound', value);
}

/**
 * Checks a report of a property suite against check.schema.json.
 * @throws Error as `validateReport`
 */
export function validateCheckReport(value: unknown): Promise<void> {
  return validateAgainst('check', value);
}

/**
 * Checks a report of a search for changes of bits against invariance.schema.json.
 * @throws Error as `validateReport`
 */
export function validateInvarianceReport(value: unknown): Promise<void> {
  return validateAgainst('invariance', value);
}
