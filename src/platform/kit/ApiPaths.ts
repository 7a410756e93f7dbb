/** The paths of the API, which take a key or a session. Not those of the tool server and the service's own pages. */
const apiPath = /^\/(?:v2|identity)\//

/** Whether a path, without its query, is the API's. */
export const isApiPath = (path: string): boolean => apiPath.test(path)
