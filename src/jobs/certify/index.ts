export type {
  AlgebraCertificate,
  Certificate,
  CertificatePlace,
  CertificateStatus,
  CountedPlace,
  OutputCertificate,
  OutputRounding,
  RoundingShare,
  SameCertificate,
} from './certificate.js';
export { certifyLaunch, type CertifiedLaunch, type CertifyRequest } from './certify-launch.js';
export { groupPlaces, groupText, type PlaceGroup } from './place-groups.js';
