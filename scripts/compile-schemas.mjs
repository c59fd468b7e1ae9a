/**
 * A plugin of the bundle: validators of the published schemas as ajv compiles them, in the place of the module that has ajv
 * compile them while an audit waits. Each schema has a module of its own, since a command needs one of them.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { minify } from 'rolldown/experimental';

const standaloneCode = createRequire(import.meta.url)('ajv/dist/standalone').default;
const prefix = '\0validate-';
const suffix = '.schema.json';
const replaced = 'src/report/validation/schema-validators.ts';

/** The schemas of a folder by their names. */
function schemasOf(folder) {
  return readdirSync(folder)
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.slice(0, -suffix.length));
}

/** The source text of the module that stands for the one that has ajv compile schemas. */
function loadingModule(names) {
  const rows = names.map((name) => `  ${name}: () => import(${JSON.stringify(prefix + name)}),`);
  return [
    'const modules = {',
    ...rows,
    '};',
    'export async function loadValidator(name) {',
    '  return (await modules[name]()).default;',
    '}',
  ].join('\n');
}

/** The source text of a module that exports the validator of a schema. */
function compileSchema(folder, name) {
  // Without inlined references the code is a fifth shorter.
  const options = { allErrors: true, strict: true, allowUnionTypes: true, inlineRefs: false };
  const ajv = new Ajv2020({ ...options, code: { source: true, esm: true } });
  for (const one of schemasOf(folder)) {
    const file = one + suffix;
    ajv.addSchema(JSON.parse(readFileSync(join(folder, file), 'utf8')), file);
  }
  // Ajv requires what its code needs at run time, whatever kind of module it is asked for.
  const imports = [];
  const code = standaloneCode(ajv, ajv.getSchema(name + suffix)).replaceAll(
    /require\("([^"]+)"\)\.default/g,
    (_, module) => {
      const runtime = `runtime${imports.length}`;
      imports.push(`import ${runtime} from ${JSON.stringify(`${module}.js`)};\n`);
      return `${runtime}.default`;
    },
  );
  return imports.join('') + code;
}

export const compiledSchemas = (root) => {
  const folder = join(root, 'src/report/json');
  return {
    name: 'compiled-schemas',
    resolveId: (id) => (id.startsWith(prefix) ? id : null),
    load(id) {
      if (id.startsWith(prefix)) return compileSchema(folder, id.slice(prefix.length));
      return id === join(root, replaced) ? loadingModule(schemasOf(folder)) : null;
    },
    // Nobody reads this code, and engines read all of it before they run any.
    async generateBundle(_, files) {
      const chunks = Object.values(files).filter(({ type }) => type === 'chunk');
      for (const chunk of chunks)
        if (chunk.moduleIds.some((id) => id.startsWith(prefix)))
          chunk.code = (await minify(chunk.fileName, chunk.code)).code;
    },
  };
};
