import { lazily } from '../../reuse.js';
import {
  contractSchema,
  fileSchema,
  parameterSchemas,
  recurrentContractSchema,
} from './launch-schemas.js';

/**
 * The checks of the schemas, which ajv compiles at the first call. That takes longer than a small launch, so the package holds
 * compiled checks, and these take the place of this module there (scripts/compile-schemas.mjs).
 */
export const loadChecks = lazily(async () => {
  const { Ajv2020 } = await import('ajv/dist/2020.js');
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false });
  return {
    file: ajv.compile(fileSchema),
    contract: ajv.compile(contractSchema),
    recurrentContract: ajv.compile(recurrentContractSchema),
    parameters: new Map(
      Object.entries(parameterSchemas).map(([kind, schema]) => [kind, ajv.compile(schema)]),
    ),
  };
});
/** The checks that `loadChecks` gives. */
export type Checks = Awaited<ReturnType<typeof loadChecks>>;
