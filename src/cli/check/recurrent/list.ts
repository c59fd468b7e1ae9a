import {
  recurrentLaw,
  recurrentLawIds,
  recurrentRegime,
  recurrentRegimeNames,
} from '../../../../properties/index.js';
import { listHead } from '../../../jobs/index.js';
import { toolVersion } from '../../tool-version.js';
import type { CheckList } from '../publish.js';

/** The JSON document of the properties and regimes of linear attention, which has no features. */
export function recurrentCheckList(): CheckList {
  return {
    ...listHead('check-list', toolVersion()),
    properties: recurrentLawIds.map((name) => {
      const { statement, reason, strengths, usual } = recurrentLaw(name);
      return { name, statement, reason, promises: [...strengths, 'none'], usualPromise: usual };
    }),
    features: [],
    regimes: recurrentRegimeNames.map((name) => {
      const { description, provokes } = recurrentRegime(name);
      return { name, description, provokes };
    }),
  };
}
