import { lineOfSite, type CertificatePlace } from '../../../jobs/index.js';

/** What the lines of programs say: the PTX of each launch, and the sources that are given, by the names of their files. */
export interface ProgramTexts {
  readonly ptx: readonly string[];
  readonly sources: ReadonlyMap<string, string>;
}

function lineOf(text: string | undefined, line: number): string {
  return text?.split('\n')[line - 1]?.replaceAll(/\s+/g, ' ').trim() ?? '';
}

/** The name of a file without its folders. */
export function fileName(path: string): string {
  return path.replace(/^.*[\\/]/, '');
}

/** The line of a source as it is given; '' where it is not. */
export function sourceLine({ sources }: ProgramTexts, file: string, line: number): string {
  return lineOf(sources.get(fileName(file)), line);
}

/** The line of a place: of its source, or of what that is inlined in, where one is given, else of the PTX. */
export function lineOfPlace(
  texts: ProgramTexts,
  { launch, site, source }: CertificatePlace,
): string {
  for (const at of [source, source?.inlinedAt]) {
    const known = at ? sourceLine(texts, at.file, at.line) : '';
    if (known !== '') return known;
  }
  return lineOf(texts.ptx[(launch ?? 1) - 1], lineOfSite(site) ?? 0);
}
