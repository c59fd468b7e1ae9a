import { readFile } from 'node:fs/promises';
import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';

/** The most violations that a message lists. */
const listedViolations = 8;

/** Keywords whose failure only says that a subschema failed, which is listed by itself. */
const wrappers: readonly string[] = ['if'];

/** What a violation is about beyond ajv's message, by keyword. */
const subjects: Readonly<Record<string, string>> = {
  additionalProperties: 'additionalProperty',
  enum: 'allowedValues',
  const: 'allowedValue',
};

function describeViolation({ instancePath, message, keyword, params }: ErrorObject): string {
  const subject = subjects[keyword];
  const detail = subject === undefined ? '' : ` (${JSON.stringify(params[subject])})`;
  return `${instancePath === '' ? '/' : instancePath} ${message ?? keyword}${detail}`;
}

/** Compiles the schema on its first call; ajv is loaded then, and not with this module. */
function lazyValidator(): () => Promise<ValidateFunction> {
  let compiled: Promise<ValidateFunction> | undefined;
  const compile = async () => {
    const [{ Ajv2020 }, text] = await Promise.all([
      import('ajv/dist/2020.js'),
      readFile(new URL('./report.schema.json', import.meta.url), 'utf8'),
    ]);
    const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
    return ajv.compile(JSON.parse(text) as object);
  };
  return () => (compiled ??= compile());
}

const validator = lazyValidator();

/**
 * Checks a report against report.schema.json (JSON Schema 2020-12), the schema that the package
 * publishes.
 * @throws Error, not RequestError, when it does not conform: a report is of our own making. The
 * message lists the JSON pointer of each violation and what is wrong there.
 */
export async function validateReport(value: unknown): Promise<void> {
  const validate = await validator();
  if (validate(value)) return;
  const violations = (validate.errors ?? [])
    .filter(({ keyword }) => !wrappers.includes(keyword))
    .map(describeViolation);
  const shown = violations.slice(0, listedViolations).join('; ');
  const more = violations.length - listedViolations;
  throw new Error(
    `a report breaks report.schema.json, which is a bug in flashproof: ${shown}${more > 0 ? `; and ${more} more` : ''}`,
  );
}
