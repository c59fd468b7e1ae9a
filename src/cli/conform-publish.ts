import { conformanceSentence, renderConformance, type Conformance } from '../conform/index.js';
import { toolVersion } from './tool-version.js';
import { writeJson } from './write-json.js';

/** The JSON document of a conformance. */
function document(conformance: Conformance, seconds: number): object {
  const { pass, ...rest } = conformance;
  return {
    kind: 'conform',
    schemaVersion: 1,
    tool: { name: 'flashproof', version: toolVersion() },
    created: new Date().toISOString(),
    seconds,
    verdict: { pass, sentence: conformanceSentence(conformance) },
    ...rest,
  };
}

/**
 * Prints a conformance, and writes the file that was asked for.
 * @throws RequestError when the file cannot be written
 */
export async function publishConformance(
  conformance: Conformance,
  seconds: number,
  { json, quiet }: { readonly json?: string | undefined; readonly quiet?: boolean | undefined },
): Promise<void> {
  if (json !== undefined) await writeJson(json, document(conformance, seconds));
  if (json === '-') return;
  process.stdout.write(
    quiet === true ? `${conformanceSentence(conformance)}\n` : renderConformance(conformance),
  );
}
