/**
 * A plugin of the bundle: validators of the published schemas as ajv compiles them, in the place of the module that has ajv
 * compile them while an audit waits.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';

const standaloneCode = createRequire(import.meta.url)('ajv/dist/standalone').default;
const compiled = '\0compiled-schemas';
const replaced = 'src/report/validation/schema-validators.ts';
const replacement = `
export async function loadValidator(name) {
  return (await import(${JSON.stringify(compiled)}))[name];
}`;

/** The source text of a module that exports a validator for each schema, by its name. */
function compileSchemas(root) {
  const folder = join(root, 'src/report/json');
  // Without inlined references the code is a fifth shorter.
  const options = { allErrors: true, strict: true, allowUnionTypes: true, inlineRefs: false };
  const ajv = new Ajv2020({ ...options, code: { source: true, esm: true } });
  const names = readdirSync(folder)
    .filter((file) => file.endsWith('.schema.json'))
    .map((file) => {
      ajv.addSchema(JSON.parse(readFileSync(join(folder, file), 'utf8')), file);
      return [file.replace('.schema.json', ''), file];
    });
  // Ajv requires what its code needs at run time, whatever kind of module it is asked for.
  const imports = [];
  const code = standaloneCode(ajv, Object.fromEntries(names)).replaceAll(
    /require\("([^"]+)"\)\.default/g,
    (_, module) => {
      const name = `runtime${imports.length}`;
      imports.push(`import ${name} from ${JSON.stringify(`${module}.js`)};\n`);
      return `${name}.default`;
    },
  );
  return imports.join('') + code;
}

export const compiledSchemas = (root) => ({
  name: 'compiled-schemas',
  resolveId: (id) => (id === compiled ? id : null),
  load(id) {
    if (id === compiled) return compileSchemas(root);
    return id === join(root, replaced) ? replacement : null;
  },
});
