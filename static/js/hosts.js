/** Hosts: read again when one of them, or what it does, has changed. */
import { watchLists } from "./lists.js";

watchLists("hosts-changed");
