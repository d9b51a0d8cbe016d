"""Addresses about people."""

from __future__ import annotations

from django.urls import path

from apps.people.views.audit import audit_log
from apps.people.views.members import change_member, member_list
from apps.people.views.passwords import change_password, choose_password, forgotten
from apps.people.views.profile import profile, settings_root
from apps.people.views.sessions import end_others, end_session, session_list
from apps.people.views.sign_in import link, sign_in, sign_out, theme
from apps.people.views.tokens import revoke_token, token_list

urlpatterns = [
    path("sign-in/", sign_in, name="sign-in"),
    path("sign-out/", sign_out, name="sign-out"),
    path("password/forgotten/", forgotten, name="password-forgotten"),
    path("password/<uidb64>/<token>/", choose_password, name="choose-password"),
    path("theme/", theme, name="theme"),
    path("link/", link, name="link"),
    path("settings/", settings_root, name="settings"),
    path("settings/profile/", profile, name="settings-profile"),
    path("settings/profile/password/", change_password, name="settings-password"),
    path("settings/sessions/", session_list, name="settings-sessions"),
    path("settings/sessions/<int:pk>/end/", end_session, name="settings-session-end"),
    path("settings/sessions/end-others/", end_others, name="settings-sessions-others"),
    path("settings/tokens/", token_list, name="settings-tokens"),
    path("settings/tokens/<int:pk>/revoke/", revoke_token, name="settings-token-revoke"),
    path("settings/members/", member_list, name="settings-members"),
    path("settings/members/<int:pk>/", change_member, name="settings-member"),
    path("settings/audit/", audit_log, name="settings-audit"),
]
