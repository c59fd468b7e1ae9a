import { readFile } from 'node:fs/promises';
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js';
import { lazily } from '../../reuse.js';

/** The schemas that the package publishes, each in `<name>.schema.json`; the others refer to the first. */
const schemaNames = [
  'report',
  'recurrent',
  'link',
  'chain',
  'audits',
  'bound',
  'check',
  'invariance',
] as const;
export type SchemaName = (typeof schemaNames)[number];

/** Reads the schemas on its first call; ajv is loaded then, and not when this module is loaded. */
const loadSchemas = lazily(async (): Promise<Ajv2020> => {
  const read = async (name: SchemaName) =>
    JSON.parse(
      await readFile(new URL(`../json/${name}.schema.json`, import.meta.url), 'utf8'),
    ) as object;
  const [{ Ajv2020 }, ...schemas] = await Promise.all([
    import('ajv/dist/2020.js'),
    ...schemaNames.map(read),
  ]);
  const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
  schemas.forEach((schema, i) => ajv.addSchema(schema, `${schemaNames[i]}.schema.json`));
  return ajv;
});

/**
 * The validator of a published schema, which ajv compiles on first use. That takes as long as a small audit, so the package
 * holds compiled validators, and these take the place of this module there (scripts/compile-schemas.mjs).
 */
export async function loadValidator(name: SchemaName): Promise<ValidateFunction> {
  return (await loadSchemas()).getSchema(`${name}.schema.json`)!;
}
