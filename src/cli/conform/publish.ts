import { toolVersion } from '../tool-version.js';
import { conformanceSentence, renderConformance } from '../../report/text/index.js';
import type { Conformance } from '../../conform/index.js';
import { documentHead } from '../../jobs/index.js';
import { writeJson } from '../files/publish.js';

/** The JSON document of a conformance. */
function document(conformance: Conformance, seconds: number): object {
  const { pass, ...rest } = conformance;
  return {
    ...documentHead('conform', toolVersion(), seconds),
    verdict: { pass, sentence: conformanceSentence(conformance) },
    ...rest,
  };
}

/**
 * Prints a conformance, and writes the file that was asked for. The text comes first: a file that cannot
 * be written must not lose what was found.
 * @throws RequestError when the file cannot be written
 */
export async function publishConformance(
  conformance: Conformance,
  seconds: number,
  { json, quiet }: { readonly json?: string | undefined; readonly quiet?: boolean | undefined },
): Promise<void> {
  if (json !== '-')
    process.stdout.write(
      quiet === true ? `${conformanceSentence(conformance)}\n` : renderConformance(conformance),
    );
  if (json !== undefined) await writeJson(json, document(conformance, seconds));
}
