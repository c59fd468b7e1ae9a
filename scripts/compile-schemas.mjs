/**
 * A plugin of the bundle: validators of the published schemas and of launch files as ajv compiles them, in the place of the
 * modules that have ajv compile them while a command waits. Each schema has a module of its own, since a command needs one of them;
 * but those of audits, which hold one another, share one.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { minify } from 'rolldown/experimental';
import typescript from 'typescript';

const standaloneCode = createRequire(import.meta.url)('ajv/dist/standalone').default;
const prefix = '\0validate-';
const suffix = '.schema.json';
const replaced = 'src/report/validation/schema-validators.ts';
const launches = `${prefix}launch`;
const launchSchemas = 'src/ptx/launch/launch-schemas.ts';
const launchChecks = 'src/ptx/launch/launch-checks.ts';
/** The source text of the module that stands for the one that has ajv compile the schemas of launch files. */
const loadingChecks = `
export async function loadChecks() {
  const { file, contract, recurrentContract, ...parameters } = await import(${JSON.stringify(launches)});
  return { file, contract, recurrentContract, parameters: new Map(Object.entries(parameters)) };
}`;

/** The schemas of a folder by their names. */
function schemasOf(folder) {
  return readdirSync(folder)
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.slice(0, -suffix.length));
}

/** The schemas of reports of audits: those of a chain and of several files hold the others. */
const ofAudits = ['report', 'recurrent', 'link', 'chain', 'audits'];

/** The name of the module that has a schema's validator. */
const moduleOf = (name) => (ofAudits.includes(name) ? 'audits' : name);

/** The source text of the module that stands for the one that has ajv compile schemas. */
function loadingModule(names) {
  const rows = names.map(
    (name) => `  ${name}: () => import(${JSON.stringify(prefix + moduleOf(name))}),`,
  );
  return [
    'const modules = {',
    ...rows,
    '};',
    'export async function loadValidator(name) {',
    '  return (await modules[name]())[name];',
    '}',
  ].join('\n');
}

/** A compiler of schemas to source text. */
function createCompiler(options) {
  const code = { source: true, esm: true };
  return new Ajv2020({ strict: true, allowUnionTypes: true, ...options, code });
}

/** Code of ajv as a module. It requires what it needs at run time, whatever kind of module ajv is asked for. */
function asModule(code) {
  const imports = [];
  const body = code.replaceAll(/require\("([^"]+)"\)\.default/g, (_, module) => {
    const runtime = `runtime${imports.length}`;
    imports.push(`import ${runtime} from ${JSON.stringify(`${module}.js`)};\n`);
    return `${runtime}.default`;
  });
  return imports.join('') + body;
}

/** A schema without the words for its readers, which code of ajv would hold: in properties of these names are schemas, no texts. */
function withoutWords(schema) {
  return JSON.parse(JSON.stringify(schema), (key, value) =>
    (key === 'title' || key === 'description') && typeof value === 'string' ? undefined : value,
  );
}

/** The source text of a module that exports the validators of its schemas, each by the schema's name. */
function compileModule(folder, module) {
  // Without inlined references the code is a fifth shorter.
  const ajv = createCompiler({ allErrors: true, inlineRefs: false });
  const names = schemasOf(folder);
  for (const name of names) {
    const file = name + suffix;
    ajv.addSchema(withoutWords(JSON.parse(readFileSync(join(folder, file), 'utf8'))), file);
  }
  const own = names.filter((name) => moduleOf(name) === module);
  return asModule(
    standaloneCode(ajv, Object.fromEntries(own.map((name) => [name, name + suffix]))),
  );
}

/** The source text of a module that exports a check of launch files, one of each kind of contract and one for each kind of parameter. */
async function compileLaunchSchemas(root) {
  const source = readFileSync(join(root, launchSchemas), 'utf8');
  const options = { module: typescript.ModuleKind.ESNext, target: typescript.ScriptTarget.ES2022 };
  const { outputText } = typescript.transpileModule(source, { compilerOptions: options });
  const module = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
  const schemas = {
    file: module.fileSchema,
    contract: module.contractSchema,
    recurrentContract: module.recurrentContractSchema,
    ...module.parameterSchemas,
  };
  const ajv = createCompiler({ strictRequired: false });
  for (const [name, schema] of Object.entries(schemas)) ajv.addSchema(schema, name);
  const names = Object.keys(schemas).map((name) => [name, name]);
  return asModule(standaloneCode(ajv, Object.fromEntries(names)));
}

export const compiledSchemas = (root) => {
  const folder = join(root, 'src/report/json');
  return {
    name: 'compiled-schemas',
    resolveId: (id) => (id.startsWith(prefix) ? id : null),
    load(id) {
      if (id === launches) return compileLaunchSchemas(root);
      if (id === join(root, launchChecks)) return loadingChecks;
      if (id.startsWith(prefix)) return compileModule(folder, id.slice(prefix.length));
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
