"""Files of protobuf that serializers take for known, and do not register. Pure.

Beside those that protobuf's library has itself: common types of Google's interfaces, and what
Confluent's serializers have for their own. Only their messages and fields are here, without options
and extensions. A schema may bring one of them as a reference, as Python's serializer does; what is
here holds then, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

IMPORTS: Final[Mapping[str, str]] = {
    "google/type/color.proto": "google/protobuf/wrappers.proto",
    "google/type/datetime.proto": "google/protobuf/duration.proto",
    "google/type/interval.proto": "google/protobuf/timestamp.proto",
}
DECLARATIONS: Final[Mapping[str, str]] = {
    "confluent/meta.proto": """
        message Meta {
          string doc = 1; map<string, string> params = 2;
          repeated string tags = 3; repeated Rule rules = 4;
        }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; }""",
    "confluent/type/decimal.proto": """
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "confluent/type/variant.proto": "message Variant { bytes metadata = 1; bytes value = 2; }",
    "google/type/calendar_period.proto": """
        enum CalendarPeriod {
          CALENDAR_PERIOD_UNSPECIFIED = 0; DAY = 1; WEEK = 2; FORTNIGHT = 3;
          MONTH = 4; QUARTER = 5; HALF = 6; YEAR = 7;
        }""",
    "google/type/color.proto": """
        message Color {
          float red = 1; float green = 2; float blue = 3; google.protobuf.FloatValue alpha = 4;
        }""",
    "google/type/date.proto": "message Date { int32 year = 1; int32 month = 2; int32 day = 3; }",
    "google/type/datetime.proto": """
        message DateTime {
          int32 year = 1; int32 month = 2; int32 day = 3; int32 hours = 4;
          int32 minutes = 5; int32 seconds = 6; int32 nanos = 7;
          oneof time_offset { google.protobuf.Duration utc_offset = 8; TimeZone time_zone = 9; }
        }
        message TimeZone { string id = 1; string version = 2; }""",
    "google/type/dayofweek.proto": """
        enum DayOfWeek {
          DAY_OF_WEEK_UNSPECIFIED = 0; MONDAY = 1; TUESDAY = 2; WEDNESDAY = 3;
          THURSDAY = 4; FRIDAY = 5; SATURDAY = 6; SUNDAY = 7;
        }""",
    "google/type/decimal.proto": "message Decimal { string value = 1; }",
    "google/type/expr.proto": """
        message Expr {
          string expression = 1; string title = 2; string description = 3; string location = 4;
        }""",
    "google/type/fraction.proto": """
        message Fraction { int64 numerator = 1; int64 denominator = 2; }""",
    "google/type/interval.proto": """
        message Interval {
          google.protobuf.Timestamp start_time = 1; google.protobuf.Timestamp end_time = 2;
        }""",
    "google/type/latlng.proto": "message LatLng { double latitude = 1; double longitude = 2; }",
    "google/type/money.proto": """
        message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }""",
    "google/type/month.proto": """
        enum Month {
          MONTH_UNSPECIFIED = 0; JANUARY = 1; FEBRUARY = 2; MARCH = 3; APRIL = 4; MAY = 5; JUNE = 6;
          JULY = 7; AUGUST = 8; SEPTEMBER = 9; OCTOBER = 10; NOVEMBER = 11; DECEMBER = 12;
        }""",
    "google/type/phone_number.proto": """
        message PhoneNumber {
          message ShortCode { string region_code = 1; string number = 2; }
          oneof kind { string e164_number = 1; ShortCode short_code = 2; }
          string extension = 3;
        }""",
    "google/type/postal_address.proto": """
        message PostalAddress {
          int32 revision = 1; string region_code = 2; string language_code = 3;
          string postal_code = 4; string sorting_code = 5; string administrative_area = 6;
          string locality = 7; string sublocality = 8; repeated string address_lines = 9;
          repeated string recipients = 10; string organization = 11;
        }""",
    "google/type/quaternion.proto": """
        message Quaternion { double x = 1; double y = 2; double z = 3; double w = 4; }""",
    "google/type/timeofday.proto": """
        message TimeOfDay {
          int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4;
        }""",
}


def text_of(name: str) -> str:
    """A file, whose package is named like its folder; nothing for one that is not known."""
    if name not in DECLARATIONS:
        return ""
    package = name.rpartition("/")[0].replace("/", ".")
    imported = f'import "{IMPORTS[name]}";' if name in IMPORTS else ""
    return f'syntax = "proto3"; package {package}; {imported} {DECLARATIONS[name]}'
